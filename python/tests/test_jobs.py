"""Jobs: lists of them, other processes, and results that become whole."""

import pickle
import random
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

import ranway
from conftest import TOML, files
from ranway import _ranway


@pytest.fixture(scope="module")
def lossy(scenario: ranway.Scenario) -> ranway.Scenario:
    """Two points of three runs."""
    return scenario.set(runs=3).sweep(loss=[1e-4, 1e-2])


@pytest.fixture(scope="module")
def whole(lossy: ranway.Scenario) -> ranway.Results:
    return lossy.run(progress=None)


def written(results: ranway.Results, dir: Path) -> dict[str, bytes]:
    results.write(dir)
    return files(dir)


def run_some(scenario: ranway.Scenario, jobs: list[ranway.Job]) -> ranway.Results:
    return scenario.run(jobs=jobs, threads=1, progress=None)


def test_the_jobs_of_a_scenario_are_all_runs_of_all_points(lossy: ranway.Scenario) -> None:
    assert lossy.jobs() == [ranway.Job(point, run) for point in (0, 1) for run in (0, 1, 2)]
    assert [str(job) for job in lossy.jobs()][-1] == "1/2"
    assert ranway.Scenario.from_toml(TOML, set={"runs": 1}).jobs() == [(0, 0)]


def test_processes_that_are_spawned_give_the_bytes_of_a_single_run(
    tmp_path: Path, lossy: ranway.Scenario, whole: ranway.Results
) -> None:
    jobs = lossy.jobs()
    random.Random(3).shuffle(jobs)
    lists = [jobs[:1], jobs[1:3], [], jobs[3:]]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        parts = list(pool.map(run_some, [lossy] * len(lists), lists))
    assert [part.jobs for part in parts] == [sorted(some) for some in lists]
    random.Random(4).shuffle(parts)
    merged = ranway.merge(parts)
    assert merged == whole
    assert merged.jobs == lossy.jobs() and merged.partial is None
    assert written(merged, tmp_path / "merged") == written(whole, tmp_path / "whole")


def test_parts_merge_after_they_were_written(tmp_path: Path, lossy: ranway.Scenario, whole: ranway.Results) -> None:
    jobs = lossy.jobs()
    for i, some in enumerate((jobs[::2], jobs[1::2])):
        lossy.run(jobs=some, progress=None, out=tmp_path / str(i))
    merged = ranway.merge(ranway.read(tmp_path / str(i)) for i in (1, 0))
    assert written(merged, tmp_path / "merged") == written(whole, tmp_path / "whole")


def test_results_of_some_jobs_are_partial(lossy: ranway.Scenario, whole: ranway.Results) -> None:
    some = lossy.run(jobs=[(1, 2), (0, 0)], progress=None)
    assert some.jobs == [ranway.Job(0, 0), ranway.Job(1, 2)]
    assert some.partial == {"finished": 2, "of": 6}
    assert repr(some).endswith(": 2 points x 3 runs, seed 1, 2 of 6 jobs>")
    assert whole.partial is None
    assert lossy.run(jobs=lossy.jobs(), progress=None) == whole


def test_runs_and_seed_of_the_call_hold_for_jobs_too(scenario: ranway.Scenario) -> None:
    parts = [ranway.run(scenario, runs=2, seed=9, jobs=[(0, run)], progress=None) for run in (0, 1)]
    assert ranway.merge(parts) == ranway.run(scenario, runs=2, seed=9, progress=None)


def test_jobs_that_a_scenario_does_not_have_are_named(lossy: ranway.Scenario) -> None:
    with pytest.raises(ValueError, match=r"jobs out of range: 2/0 .*; jobs listed more than once: 0/1"):
        lossy.run(jobs=[(0, 1), (2, 0), (0, 1)])
    with pytest.raises(ValueError, match="invalid job `-1/0`"):
        lossy.run(jobs=[(-1, 0)])
    with pytest.raises(TypeError, match=r"jobs: '00' should be a Job or a pair \(point, run\)"):
        lossy.run(jobs=["00"])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="threads=4 sets the number of threads"):
        lossy.run(jobs=4)  # type: ignore[arg-type]


def test_missing_and_repeated_jobs_are_named(lossy: ranway.Scenario, whole: ranway.Results) -> None:
    part = run_some(lossy, lossy.jobs()[:4])
    with pytest.raises(ranway.RanwayError, match=r"^missing jobs: 1/1, 1/2$"):
        ranway.merge([part])
    with pytest.raises(ranway.RanwayError, match="jobs in more than one of the results: 0/0, 0/1, 0/2, 1/0"):
        ranway.merge([whole, part])
    with pytest.raises(ranway.RanwayError, match="they differ in their seed"):
        ranway.merge([part, run_some(lossy.set(seed=2), lossy.jobs()[4:])])
    with pytest.raises(ranway.RanwayError, match="there are no results to merge"):
        ranway.merge([])


def test_results_survive_pickling(whole: ranway.Results) -> None:
    again = pickle.loads(pickle.dumps(whole))
    assert again == whole
    assert (again.timing, again.summary, again.jobs) == (whole.timing, whole.summary, whole.jobs)
    assert all(again.table(table).equals(whole.table(table)) for table in _ranway.TABLES)


def test_a_job_survives_pickling() -> None:
    again = pickle.loads(pickle.dumps(ranway.Job(3, 1)))
    assert (again, type(again)) == (ranway.Job(point=3, run=1), ranway.Job)


def test_a_pickled_scenario_needs_none_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text(TOML)
    (tmp_path / "up.trace").write_text("1\n2\n2\n5\n9\n")
    path = tmp_path / "traced.toml"
    path.write_text('include = ["base.toml"]\n[dumbbell]\nrate = { kind = "trace", file = "up.trace" }\n')
    scenario = ranway.Scenario(path)
    expected = scenario.run(progress=None)
    pickled = pickle.dumps(scenario)
    for file in tmp_path.iterdir():
        file.unlink()
    again = pickle.loads(pickled)
    assert repr(again) == repr(scenario)
    assert again.run(progress=None) == expected
    assert again.set(seed=2).run(progress=None) != expected
    assert pickle.loads(pickle.dumps(again)).run(progress=None) == expected


def test_a_warning_is_given_where_a_scenario_is_made_and_not_where_it_arrives() -> None:
    with pytest.warns(UserWarning, match="unused parameter"):
        scenario = ranway.Scenario.from_toml(TOML.replace("loss = 1e-3", "loss = 1e-3\nspare = 1"))
    assert pickle.loads(pickle.dumps(scenario)).title == "Two flows"
