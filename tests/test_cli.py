"""The command `e2s`: it lists its commands, and says which one it does not have."""

from __future__ import annotations

from estimator2strategy import __main__


def test_help_lists_the_commands(capsys):
    assert __main__.main(["--help"]) == 0
    assert "doctor" in capsys.readouterr().out


def test_unknown_command_is_named_and_the_others_are_listed(capsys):
    assert __main__.main(["chek"]) == 2
    said = capsys.readouterr().err
    assert "no command 'chek'" in said
    assert "doctor" in said


def test_no_command_is_an_error(capsys):
    assert __main__.main([]) == 2
    assert "usage: e2s" in capsys.readouterr().err
