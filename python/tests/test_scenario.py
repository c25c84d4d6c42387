"""Scenarios: where they come from, what changes them, what is said of wrong ones."""

import pickle
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ranway
from conftest import ROOT, TOML

AS_DICT: dict[str, Any] = {
    "title": "Two flows",
    "duration": "4 s",
    "warmup": "1 s",
    "runs": 2,
    "parameters": {"loss": 1e-3},
    "dumbbell": {
        "rate": "10 Mbit/s",
        "rtt": "30 ms",
        "loss": "${loss}",
        "queue": {"kind": "drop-tail", "packets": 50},
    },
    "flows": [{"name": "first", "cc": "cubic"}, {"name": "second", "cc": "bbr", "start": "1 s"}],
}


def test_a_file_a_text_and_a_dict_are_the_same_scenario(tmp_path: Path) -> None:
    (tmp_path / "two.toml").write_text(TOML)
    from_file = ranway.Scenario(tmp_path / "two.toml")
    results = [
        ranway.run(s, runs=1, progress=None) for s in (from_file, TOML_SCENARIO, ranway.Scenario.from_dict(AS_DICT))
    ]
    assert results[0] == results[1] == results[2]


TOML_SCENARIO = ranway.Scenario.from_toml(TOML)


def test_every_built_in_scenario_loads_by_its_name() -> None:
    files = {path.stem: tomllib.loads(path.read_text()) for path in (ROOT / "crates/scenario/builtin").glob("*.toml")}
    assert ranway.builtin().keys() == files.keys()
    for name, file in files.items():
        assert ranway.Scenario(name).title == file["title"]
    # Each says something of its own.
    assert len({*ranway.builtin().values()} - {""}) == len(files)


def test_includes_of_a_file_are_beside_it(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text(TOML)
    (tmp_path / "more.toml").write_text('include = ["base.toml"]\ntitle = "more"\n')
    assert ranway.Scenario(tmp_path / "more.toml").title == "more"


def test_set_gives_a_new_scenario_and_leaves_the_old_one() -> None:
    swept = ranway.Scenario("loss-sweep")
    pinned = swept.set(loss=1e-3)
    assert len(swept.points) == 12
    assert pinned.points == [{"cc": cc} for cc in ("new-reno", "cubic", "bbr")]
    assert repr(pinned) == "Scenario('loss-sweep').set(loss=0.001)"


def test_a_dotted_path_sets_a_key_of_every_flow() -> None:
    results = ranway.run(TOML_SCENARIO.set({"flows.*.cc": "vegas", "dumbbell.rate": "5 Mbit/s"}), progress=None)
    assert set(results.flows["cc"].cast(str)) == {"vegas"}
    assert 4 < results.summary["points"][0]["goodput_mbps"]["mean"] < 5


def test_the_product_of_what_is_swept_gives_the_points() -> None:
    points = TOML_SCENARIO.sweep(loss=np.array([0.0, 0.5])).sweep({"flows.first.cc": ["bbr", "cubic"]}).points
    assert len(points) == 4
    assert {(p["loss"], p["flows.first.cc"]) for p in points} == {(x, y) for x in (0, 0.5) for y in ("bbr", "cubic")}


def test_to_sweep_a_key_again_replaces_its_values() -> None:
    swept = ranway.Scenario("aqm-compare")
    assert len(swept.points) == 5
    assert swept.sweep({"dumbbell.queue": ["codel", "fq"]}).points == [{"dumbbell.queue": q} for q in ("codel", "fq")]


@pytest.mark.parametrize("value", ['a "quote"', "back\\slash", "line\nend\x7f\x00", "ünïcode \U0001f4f6", ""])
def test_any_text_survives_the_way_into_a_scenario(value: str) -> None:
    assert TOML_SCENARIO.set(title=value).title == value
    assert ranway.Scenario.from_dict(AS_DICT | {"title": value}).title == value


def test_numpy_numbers_are_numbers() -> None:
    assert TOML_SCENARIO.sweep(loss=[np.float64(0.25), np.float32(0.5)]).points == [{"loss": 0.25}, {"loss": 0.5}]
    assert TOML_SCENARIO.sweep(runs=[np.int64(3)]).points == [{"runs": 3}]


def test_a_scenario_survives_pickling() -> None:
    scenario = TOML_SCENARIO.sweep(loss=[0.0, 0.5])
    again = pickle.loads(pickle.dumps(scenario))
    assert (repr(again), again.points) == (repr(scenario), scenario.points)


def says(make: Any) -> str:
    with pytest.raises(ranway.ScenarioError) as error:
        make()
    assert isinstance(error.value, ValueError)
    return str(error.value)


def test_an_error_in_a_file_names_file_line_and_column(tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(TOML.replace('cc = "cubic"', 'cc = "cubik"'))
    line = TOML.splitlines().index('cc = "cubic"') + 1
    expected = f"{path}:{line}:6: flows[0].cc: unknown value `cubik`; did you mean `cubic`?"
    assert says(lambda: ranway.Scenario(path)) == expected


def test_an_error_in_a_text_names_line_and_column() -> None:
    said = says(lambda: ranway.Scenario.from_toml("duration = \n"))
    assert said.startswith("<text>:1:")
    assert "\n" not in said


def test_an_error_in_a_dict_names_the_key() -> None:
    wrong = {**AS_DICT, "dumbbell": {**AS_DICT["dumbbell"], "rtt": "30 parsecs"}}
    assert says(lambda: ranway.Scenario.from_dict(wrong)).startswith("dumbbell.rtt: ")


def test_an_error_in_what_is_set_shows_it() -> None:
    said = says(lambda: TOML_SCENARIO.set({"dumbbell.quue": "codel"}))
    assert said == 'set(dumbbell.quue="codel"): dumbbell.quue: unknown key; did you mean `queue`?'


def test_two_faults_are_two_lines() -> None:
    said = says(lambda: TOML_SCENARIO.set({"flows.first.start": "-1 s"}).set({"flows.second.cc": "x"}))
    assert all(said.splitlines())


def test_a_name_that_is_nothing_gets_the_nearest_one() -> None:
    assert says(lambda: ranway.Scenario("dumbbel")).endswith("did you mean `dumbbell`?")


def test_what_toml_cannot_say_is_refused_with_its_key() -> None:
    assert says(lambda: TOML_SCENARIO.set(loss=None)) == "loss: None is not allowed in a scenario; omit the key"
    assert says(lambda: ranway.Scenario.from_dict({"flows": [{"cc": object()}]})).startswith(
        "flows[0].cc: object is no"
    )
    assert says(lambda: TOML_SCENARIO.sweep(loss=[])) == "sweep(loss=[]): must be a list of at least one value"
    assert says(lambda: TOML_SCENARIO.sweep(loss="bbr")).endswith("must be a list of at least one value")


def test_a_parameter_that_nothing_uses_is_warned_of() -> None:
    with pytest.warns(UserWarning, match=r"parameters\.spare: unused parameter"):
        ranway.Scenario.from_toml(TOML.replace("loss = 1e-3", "loss = 1e-3\nspare = 1"))


def test_the_schema_describes_a_scenario() -> None:
    schema = ranway.schema()
    assert {"duration", "dumbbell", "flows", "sweep"} <= schema["properties"].keys()
