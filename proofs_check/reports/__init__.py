"""Reports: one document, and every format drawn from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from marginlab.theory.lazy import lazy_names

if TYPE_CHECKING:
    from marginlab.proofs_check.reports.document import report_document as report_document
    from marginlab.proofs_check.reports.graph import claims_graph_dot as claims_graph_dot
    from marginlab.proofs_check.reports.graph import claims_graph_svg as claims_graph_svg
    from marginlab.proofs_check.reports.graph import claims_graph_text as claims_graph_text
    from marginlab.proofs_check.reports.html_page import html_report as html_report
    from marginlab.proofs_check.reports.junit import junit_report as junit_report
    from marginlab.proofs_check.reports.latex import latex_report as latex_report
    from marginlab.proofs_check.reports.markdown import markdown_report as markdown_report
    from marginlab.proofs_check.reports.schema import report_schema as report_schema
    from marginlab.proofs_check.reports.writing import figure_drawers as figure_drawers
    from marginlab.proofs_check.reports.writing import json_report as json_report
    from marginlab.proofs_check.reports.writing import write_reports as write_reports

_NAMES = {
    "document": ("report_document",),
    "graph": ("claims_graph_dot", "claims_graph_svg", "claims_graph_text"),
    "html_page": ("html_report",),
    "junit": ("junit_report",),
    "latex": ("latex_report",),
    "markdown": ("markdown_report",),
    "schema": ("report_schema",),
    "writing": ("figure_drawers", "json_report", "write_reports"),
}

__getattr__, __dir__ = lazy_names(
    __name__, {name: f"{__name__}.{module}" for module, names in _NAMES.items() for name in names}
)
