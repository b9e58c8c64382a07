import pytest

from trainer.__main__ import main


@pytest.mark.parametrize("command", [[], ["pretrain"], ["round"], ["measure"], ["bestof"]])
def test_every_command_explains_itself(command, capsys):
    with pytest.raises(SystemExit) as left:
        main([*command, "--help"])
    assert left.value.code == 0
    assert "usage: python -m trainer" in capsys.readouterr().out
