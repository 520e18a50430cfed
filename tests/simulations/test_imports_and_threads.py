"""What an import loads, and who is pinned to one thread."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

import marginlab.simulations as simulations
from marginlab.simulations.threads import single_threaded

HEAVY = ("torch", "numba", "cvxpy", "sympy", "matplotlib")


@pytest.mark.parametrize(
    "statement",
    [
        "import marginlab.theory",
        "import marginlab.theory.match_copy",
        "import marginlab.theory.ngrams",
        "import marginlab.theory.markov, marginlab.theory.disentangled, marginlab.theory.ngrams.text",
        "import marginlab.simulations",
        "from marginlab.simulations import Problem, run, run_batch, Trajectory",
    ],
)
def test_imports_stay_light(statement):
    code = f"import sys; {statement}; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_compiled_engine_needs_no_torch():
    code = (
        "import sys, numpy as np; from marginlab.simulations import Problem, run; "
        "p = Problem(np.eye(2)[None], np.ones((1, 2)), np.eye(2)[None], np.array([0])); "
        "run(p, step=0.1, steps=2, record=1); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_torch_is_pinned_even_if_it_is_loaded_inside_the_block():
    code = (
        "from marginlab.simulations import single_threaded\n"
        "with single_threaded():\n"
        "    import torch\n"
        "    torch.set_num_threads(2)\n"
        "    with single_threaded():\n"
        "        print(torch.get_num_threads())\n"
        "    print(torch.get_num_threads())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "2"]


def test_every_public_name_loads_and_others_do_not_exist():
    for name in dir(simulations):
        assert getattr(simulations, name).__name__ == name
    with pytest.raises(ImportError, match="nothing"):
        exec("from marginlab.simulations import nothing")


def fail_with_the_number_of_threads():
    with single_threaded():
        pools = {pool["num_threads"] for pool in threadpool_info()}
        raise RuntimeError("one thread" if (pools, torch.get_num_threads()) == ({1}, 1) else "more")


def test_one_thread_inside_and_as_before_outside():
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        with threadpool_limits(limits=2):
            outside = [pool["num_threads"] for pool in threadpool_info()]
            with pytest.raises(RuntimeError, match="one thread"):
                fail_with_the_number_of_threads()
            assert [pool["num_threads"] for pool in threadpool_info()] == outside
            assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
