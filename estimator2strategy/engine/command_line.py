"""The parser of every command's options.

    parser = Parser(prog="e2s check")
    parser.add_argument("--fail-on")
    parser.parse_args(["--fail_on=error"])          # takes underscores, too

`e2s record --print` takes it along, so it is Python 3.6.
"""

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NoReturn


class Parser(argparse.ArgumentParser):
    """Takes each option with dashes or underscores, and names the option that was meant.

    Options are declared with dashes, and help and messages show them so. Flags of TensorFlow
    programs have underscores, so people write both.
    """

    def __init__(self, **known: Any) -> None:
        # An abbreviation would stand for an option that a later version adds.
        super().__init__(**{"allow_abbrev": False, **known})

    def declared(self, argument: str) -> str:
        """Returns an argument with its option as it was declared; other arguments unchanged."""
        option, equals, value = argument.partition("=")
        dashed = option.replace("_", "-")
        is_ours = dashed != option and dashed in self.options()
        return dashed + equals + value if is_ours else argument

    def options(self) -> "list[str]":
        """Returns the options as they were declared."""
        return [option for action in self._actions for option in action.option_strings]

    def parse_known_args(  # type: ignore[override]
        self, args: "Sequence[str] | None" = None, namespace: Any = None
    ) -> Any:
        """See `argparse.ArgumentParser`."""
        for option in self.options():
            underscored = option[:2] + option[2:].replace("-", "_")
            self._option_string_actions.setdefault(underscored, self._option_string_actions[option])
        return super().parse_known_args(args, namespace)

    def parse_args(  # type: ignore[override]
        self, args: "Sequence[str] | None" = None, namespace: Any = None
    ) -> Any:
        """See `argparse.ArgumentParser`."""
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            self.refuse(unknown[0], "--help lists the arguments.")
        return options

    def refuse(self, argument: str, otherwise: str) -> NoReturn:
        """Ends the process with an error for an argument that nothing takes.

        Args:
            argument: The argument.
            otherwise: What to do if it looks like none of the options.
        """
        option = argument.partition("=")[0]
        if not option.startswith("-"):
            self.error(f"there is no place for {argument!r}. {otherwise}")
        from estimator2strategy.engine.spelling import did_you_mean

        hint = did_you_mean(option.replace("_", "-"), self.options(), otherwise)
        self.error(f"there is no option {option}. {hint}")


def completed_by(action: argparse.Action, words: "Callable[[], list[str]]") -> None:
    """Lets a shell complete an argument: argcomplete asks for the words when <TAB> is pressed."""
    action.completer = lambda **asked: words()  # type: ignore[attr-defined]


def positive(text: str) -> int:
    """The type of an option that takes a whole number of at least 1."""
    if not text.strip().isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: give a whole number of at least 1")
    return int(text)
