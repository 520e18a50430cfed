"""What the words of a report mean, for a reader who knows the theory and not the program."""

from __future__ import annotations

VERDICTS = {
    "PASS": "the statement held on every instance on which its assumptions hold, and enough of these "
    "remained",
    "FAIL": "on at least one instance the assumptions hold and the statement does not",
    "VACUOUS": "an assumption does not hold, so the statement says nothing there; such instances are "
    "excluded and counted",
    "INCONCLUSIVE": "not decided: the measured interval straddles the predicted one, an assumption could "
    "not be decided, or the numbers are past their trusted range",
    "ERROR": "the claim's own code raised an exception; never an expected verdict",
    "NOT RUN": "selected, but its result is not in this report",
    "NOT SELECTED": "the claim needs a higher tier than the run's, or the user left it out; the reason is given",
}

KINDS = {
    "identity": "the enclosures of the two sides must overlap",
    "limit": "every value in the window lies inside the band around the limit, and the last is not "
    "farther off than the first",
    "tight": "an upper bound that holds for every component and is attained by the best one",
    "upper": "the measured interval lies below the bound",
    "lower": "the measured interval lies above the bound",
    "rate": "the slope on every one of the equal pieces of the window, and between all recorded points half a piece "
    "to a piece apart, lies inside the predicted interval",
    "direction": "1 - cos to the certified separator decays with the norm of the weights at least with "
    "the predicted power, on every piece and half piece of the window",
    "ordering": "named quantities come in the predicted order, neighbours' intervals apart",
    "emergence": "below one level at first, above another in the end, the crossing inside the window",
    "estimate": "a value with its interval, judged only by the range that the claim states (no finite "
    "range: reported, not judged)",
}

EVIDENCE = {
    "symbolic": "computer algebra, for all values of the symbols",
    "exact": "exact integers or rationals on the instances",
    "certified": "ball arithmetic: the true value is proved to lie inside the interval",
    "numerical": "float64, the interval being the stated bound on rounding, truncation or the solver's gap",
    "statistical": "independent replications; the interval is wrong with at most the error level shown",
}

SOURCES = {
    "quoted": "the statement's words are the paper's",
    "reported": "the paper's result, in other words or through a secondary account",
    "derived": "not in the paper, worked out for this project",
}

CONTROLS = {
    "Plant": "wrong constants on the claim's own instances; must come out FAIL by comparison; on how "
    "many of the instances is shown, and with it how well the check can tell",
    "Mend": "corrected constants for a statement that is expected to fail; must come out PASS",
    "Break": "instances that break one assumption; must come out VACUOUS, and FAIL once that assumption "
    "is waived: on these instances it is needed, and so in general",
    "Waive": "a question, not a test: does the claim hold without the assumption on these instances? "
    "Whatever the answer, it is a finding and does not count as the claim's control",
}

TIERS = {
    "quick": "every claim that fits into about two minutes altogether",
    "full": "up to about an hour for each family",
    "paper": "the sizes of the papers; a GPU or a cluster",
}

STATUSES = {
    "HOLDS": "the predicate is true of the instance",
    "FAILS": "it is false: the instance is VACUOUS for the claim",
    "UNDECIDED": "it could not be settled at the precision used: the instance is INCONCLUSIVE",
}

NUMBERS = {
    "measured, predicted": "the two intervals that were compared, rounded for display; report.json holds "
    "every digit. For an array it is the component that decided. 'a ± b' is the interval [a - b, a + b]",
    "tolerance rule": "why an interval is as wide as it is: exact, rounding (number of roundings), solver "
    "gap (recomputed from the solution, never the solver's own word), truncation (finite window against a "
    "limit) or sampling",
    "witness, value": "what shows an assumption's answer, and the number in it that was compared",
    "judged / excluded": "instances that were judged, and instances on which the statement says nothing "
    "(VACUOUS) or could not be decided (INCONCLUSIVE)",
    "least valid fraction": "the claim passes only if at least this share of its instances was judged",
    "window": "the range of the parameter (step, log time) on which rates, limits and directions are "
    "judged, fixed before the run; recorded points must cover it, to a quarter of one of its four pieces",
    "constants": "the numbers that the statement is about; a Plant changes them and nothing else",
    "unit": "what one independent replication is",
    "error level": "probability that the whole run raises one false alarm, divided over all statistical "
    "judgements of all registered claims, so that a selection changes no number. Controls are not counted in it: "
    "they must FAIL, and one that does not by chance makes a run red, never green",
    "config hash": "SHA-256 of the tier, the number of seeds and the root seed: what decides every number",
    "rests on": "a claim that this one depends on did not come out as expected, or did not run",
    "not needed on the instances tried": "with the assumption waived the claim still held there; that is "
    "a finding about these instances alone; in general it is needed if a Break shows an instance that fails "
    "without it",
    "exit status": "0 if and only if something ran and every claim and control gave the verdict expected "
    "of it",
}

GLOSSARY = {
    "Verdicts": VERDICTS,
    "Kinds of claim": KINDS,
    "Evidence, strongest first": EVIDENCE,
    "Source of a statement": SOURCES,
    "Controls": CONTROLS,
    "Answers of an assumption": STATUSES,
    "Tiers": TIERS,
    "Numbers": NUMBERS,
}
