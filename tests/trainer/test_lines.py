from trainer.lines import Lines


def test_values_come_back_and_a_half_written_one_is_dropped(tmp_path):
    path = tmp_path / "some.jsonl"
    assert Lines(path).read() == []
    lines = Lines(path)
    for value in ({"a": 1}, [None, "é"]):
        lines.add(value)
    with path.open("a") as file:
        file.write('{"a": 2')
    again = Lines(path)
    again.add("last")
    assert Lines(path).read() == [{"a": 1}, [None, "é"], "last"]


def test_a_file_that_was_killed_in_its_first_line_is_empty(tmp_path):
    (tmp_path / "x").write_text('{"a"')
    assert Lines(tmp_path / "x").read() == []
