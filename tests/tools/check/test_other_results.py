"""Functions of other libraries that return more or fewer values than the program takes."""

from __future__ import annotations

import pytest

from estimator2strategy.tools.check.checking import check_text
from estimator2strategy.tools.check.settings import Settings

MADE = "import gym\n\nenv = gym.make('CartPole-v1')\n"
HELD = """\
import gym


class Agent:
    def __init__(self, name):
        self.env = gym.make(name).unwrapped

    def run(self, action):
        {}
"""
WRAPPED = """\
import gym


class Scaled(gym.RewardWrapper):
    def step(self, action):
        state, reward, done, info = self.env.step(action)
        return state, reward / 10, done, info
"""


def found(text, rule="E2S125"):
    report = check_text(text, Settings())
    return [f.message for f in report.findings if f.rule == rule]


STEP = "gym 0.26: gym.Env().step returns 5 values, not 4"
RESET = "gym 0.26: gym.Env().reset returns 2 values, not 1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MADE + "state, reward, done, _ = env.step(0)\n", STEP),
        (MADE + "state = env.reset()\nprint(state.shape)\n", RESET),
        (HELD.format("self.env.reset()\n        s, r, d, i = self.env.step(action)"), STEP),
        (HELD.format("state = self.env.reset()"), RESET),
        (WRAPPED, STEP),
        ("import gym\n\n\ndef play(env):\n    s, r, done, _ = env.step(0)\n", STEP),
        (
            "import cv2\n\n_, contours, _ = cv2.findContours(image, 1, 2)\n",
            "cv2 5.0: cv2.findContours returns 2 values, not 3",
        ),
    ],
)
def test_values_of_an_older_release_are_an_error(text, message):
    (told,) = found(text)
    assert told.partition(": ")[2] == message.partition(": ")[2]


@pytest.mark.parametrize(
    "text",
    [
        MADE + "state, reward, ended, cut, info = env.step(0)\nstate, info = env.reset()\n",
        MADE + "state = env.reset()\nstate = state[0]\n",
        MADE + "state = env.reset()\nif isinstance(state, tuple):\n    state, _ = state\n",
        MADE.replace("gym\n", "gymnasium as gym\n") + "s, r, done, _ = env.step(0)\n",
        "import gym\n\n\nclass Grid:\n    def step(self, action):\n        return 1, 2, 3, 4\n\n\n"
        "def play(env):\n    s, r, done, _ = env.step(0)\n",
        "def play(env):\n    s, r, done, _ = env.step(0)\n",
        MADE + "try:\n    s, r, d, i = env.step(0)\nexcept ValueError:\n    s, r, d, c, i = 1\n",
    ],
)
def test_values_of_today_and_of_other_objects_are_not(text):
    assert found(text) == []


def test_a_method_of_an_environment_and_its_argument_that_are_gone():
    text = HELD.format("self.env.seed(1)\n        self.env.render(mode='rgb_array')")
    assert found(text, "E2S109") == [".seed is gone: gym 0.26 does not have it (gym.Env)"]
    assert found(text, "E2S114") == ["gym 0.26: gym.Env().render has no argument 'mode'"]


def test_spaces_of_an_environment_are_there():
    assert found(MADE + "print(env.action_space.n, env.observation_space)\n", "E2S109") == []
