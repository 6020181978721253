"""Names that other libraries have dropped, and those that legacy modules still find."""

from __future__ import annotations

import pytest

from estimator2strategy.tools.check.checking import check, check_text
from estimator2strategy.tools.check.settings import Settings, Target


def dropped(text, target=Target.FACADE):
    report = check_text(text, Settings(target=target))
    return [f"{f.message}. {f.fix}" for f in report.findings if f.rule == "E2S109"]


@pytest.mark.parametrize(
    ("text", "today"),
    [
        ("from sklearn.externals import joblib\n", "joblib"),
        ("from sklearn.grid_search import GridSearchCV\n", "sklearn.model_selection.GridSearchCV"),
        ("import numpy as np\n\nx = np.float(3)\n", "float"),
        ("import numpy as np\n\nx = np.alltrue([True])\n", "numpy.all"),
    ],
)
def test_names_that_legacy_modules_find_are_errors_on_tensorflow_2_only(text, today):
    assert dropped(text) == []
    assert [found.partition(" is gone. ")[2] for found in dropped(text, Target.TF2)] == [
        f"Today: {today}."
    ]


@pytest.mark.parametrize("target", Target)
def test_names_that_nothing_brings_back_are_errors_for_both(target):
    text = "from keras.layers.merge import add\nimport scipy.misc\n\nscipy.misc.imread('a')\n"
    assert dropped(text, target) == [
        "keras.layers.merge is gone. Today: keras.layers; for the function, its Add, Concatenate "
        "or Dot.",
        "scipy.misc.imread is gone. Today: imageio.v2.imread, where flatten=True is mode='F'.",
    ]


@pytest.mark.parametrize(
    ("name", "today"),
    [
        ("cv2.cv.CV_RGB(1, 2, 3)", "the tuple (blue, green, red)"),
        ("cv2.cv.CV_FOURCC(*'XVID')", "cv2.VideoWriter_fourcc"),
        ("cv2.cv.CV_CAP_PROP_FPS", "cv2, whose names have no CV_"),
        ("numpy.lib.pad(x, 1, 'edge')", "numpy.pad"),
        ("pandas.io.json.json_normalize({})", "pandas.json_normalize"),
        ("scipy.interp(1, [1], [1])", "numpy.interp"),
        ("skimage.morphology.skeletonize_3d(x)", "skimage.morphology.skeletonize"),
        ("keras.optimizers.rmsprop(0.1)", "keras.optimizers.RMSprop"),
        ("scipy.array([1])", "numpy.array"),
        ("scipy.float_(1)", "numpy.float64"),
        ("scipy.int0(1)", "numpy.intp"),
        ("scipy.pi", "numpy.pi"),
        ("scipy.infty", "math.inf"),
        ("scipy.NZERO", "-0.0"),
        ("skimage.data.imread('a')", "skimage.io.imread"),
    ],
)
def test_the_advice_names_what_has_the_place(name, today):
    module = name.partition("(")[0].rpartition(".")[0]
    (found,) = dropped(f"import {module}\n\ny = {name}\n".replace("import cv2.cv", "import cv2"))
    assert found.endswith(f"Today: {today}.")


def test_a_module_that_did_not_load_without_a_display_is_gone_as_others_are():
    (found,) = dropped("from gym.envs.classic_control import rendering\n")
    assert found.startswith("gym.envs.classic_control.rendering is gone: gym 0.26")
    assert dropped("from gym.envs.classic_control import CartPoleEnv\n") == []


MADE = """import gym
from gym.envs.registration import register

NAME = "Pendulum-v0"
env = gym.make(NAME)
env = gym.make("CartPole-v0")
"""


def test_an_environment_of_an_older_version_is_gone():
    assert dropped(MADE) == [
        "gym.make: Pendulum-v0 is gone: gym 0.26 does not have it. Today: Pendulum-v1."
    ]


def test_an_environment_that_the_program_registers_is_there():
    assert dropped(MADE + "register(id='Pendulum-v0', entry_point='own:Pendulum')\n") == []


def test_a_module_that_loads_with_a_further_library_only_is_not_gone():
    assert dropped("import gym.envs.box2d\n") == []


@pytest.mark.parametrize(
    ("loop", "found"),
    [
        ("def f(gen):\n    for row in gen:\n        print(row.ix[3])\n", 0),
        ("def f(gen):\n    for row in [gen]:\n        print(row.ix[3])\n", 1),
        ("def f(gen):\n    print(gen.ix[3])\n", 1),
        ("for table in tables:\n    print(table.ix[3])\n", 1),
    ],
)
def test_the_items_of_an_argument_need_not_be_tables(loop, found):
    assert len(dropped(f"import pandas\n\n{loop}")) == found


def test_yaml_is_loaded_with_a_loader():
    text = "import yaml\n\na = yaml.load(f)\nb = yaml.load(f, Loader=yaml.Loader)\n"
    assert dropped(text) == ["yaml.load needs a Loader since PyYAML 6. Today: yaml.safe_load."]


def test_what_a_program_can_do_without_is_no_finding():
    text = "try:\n    from scipy.misc import imread\nexcept ImportError:\n    imread = None\n"
    assert dropped(text, Target.TF2) == []


def test_names_of_the_program_itself_are_no_finding():
    text = "def f(numpy):\n    return numpy.float\n\n\nclass keras:\n    engine = 1\n"
    assert dropped(text, Target.TF2) == []


def test_names_of_todays_keras_are_no_finding():
    assert dropped("from keras.layers import Dense, Input\nfrom keras import backend\n") == []
    assert dropped("from tensorflow.keras import backend as K\n\nx = K.mean(1)\n") == []


def test_names_that_a_release_was_tried_for_are_errors_with_that_release():
    text = "from keras import backend as K\n\nx = K.mean(1)\n"
    assert [found[:49] for found in dropped(text)] == [
        "keras.backend.mean is gone: keras 3.15 does not h"
    ]


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("figure.canvas.set_window_title('a')", 1),
        ("window.set_window_title('a')", 0),
        ("figure.canvas.manager.set_window_title('a')", 0),
        ("axes.set_axis_bgcolor('red')", 1),
    ],
)
def test_methods_of_matplotlib_are_found_where_nothing_else_has_them(line, count):
    assert len(dropped(f"import matplotlib.pyplot as plt\n\n{line}\n")) == count
    assert dropped(f"import qt\n\n{line}\n") == []


def test_the_keras_inside_contrib_has_the_public_names_of_keras():
    text = "from tensorflow.contrib.keras.python.keras.layers import Dense\n\nx = Dense(1)\n"
    deeper = text.replace("layers", "engine.training")

    def errors(program):
        report = check_text(program, Settings(target=Target.FACADE))
        return [f.rule for f in report.findings if f.severity.name == "ERROR"]

    assert errors(text) == errors(text.replace(".python.keras", "")) == []
    assert errors(deeper)[:1] == ["E2S101"]


BACKEND = "from keras import backend as K\n\nx = K.reshape(y, [1])\n"


def test_names_of_keras_2_are_in_tf_keras_for_programs_of_this_package():
    (found,) = dropped(BACKEND)
    assert "from tensorflow import keras" in found
    (found,) = dropped("from keras import backend as K\n\nx = K.image_dim_ordering()\n")
    assert "from tensorflow import keras" not in found


def test_names_of_the_backend_are_in_keras_ops_on_tensorflow_2():
    (found,) = dropped(BACKEND, Target.TF2)
    assert "keras.ops.reshape" in found


def test_the_finding_is_in_the_line_of_the_name():
    text = "import pandas as pd\n\nrows = pd.read_csv(\n    'a.csv',\n).as_matrix()\n"
    (finding,) = check_text(text).findings
    assert (finding.line, finding.column, finding.text) == (5, 3, ").as_matrix()")


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("raw = image.tostring()", 1),
        ("raw = np.zeros(3).tostring(order='C')", 1),
        ("text = etree.tostring(root)", 0),
    ],
)
def test_the_bytes_of_an_array_have_another_name(line, count):
    assert len(dropped(f"import numpy as np\n\n{line}\n")) == count
    assert dropped(f"import other\n\n{line.replace('np', 'other')}\n") == []


def test_the_canvas_of_a_figure_has_no_bytes_of_rgb():
    text = "import matplotlib.pyplot as plt\n\nfigure = plt.figure()\nx = figure.canvas.{}()\n"
    (found,) = dropped(text.format("tostring_rgb"))
    assert found.startswith(".tostring_rgb is gone since Matplotlib 3.10")
    assert dropped(text.format("buffer_rgba")) == []


def test_word_vectors_of_gensim_3_are_gone():
    line = "from gensim.models import Word2Vec\n\nprint(Word2Vec.load('m').wv.{})\n"
    assert len(dropped(line.format("vocab"))) == 1
    assert len(dropped(line.format("index2word"))) == 1
    assert dropped(line.format("key_to_index")) == []
    assert dropped(line.replace("gensim", "other").format("vocab")) == []


def test_word_vectors_are_told_in_a_file_that_does_not_make_the_model(tmp_path):
    (tmp_path / "words.py").write_text("def words(model):\n    return list(model.wv.vocab)\n")
    assert check([str(tmp_path)], Settings()).findings == ()
    text = "from gensim.models import Word2Vec\n\nmodel = Word2Vec.load('m')\n"
    (tmp_path / "train.py").write_text(text)
    (found,) = check([str(tmp_path)], Settings()).findings
    assert (found.rule, found.message) == ("E2S109", ".wv.vocab is gone since gensim 4")


def test_names_that_word_vectors_alone_have_need_no_class():
    text = "import gensim\n\ndef f(words):\n    return words.index2word\n"
    (found,) = dropped(text)
    assert found.startswith(".index2word is gone since gensim 4")
    assert dropped(text.replace("index2word", "vocab")) == []
    own = "\n\nclass Words:\n    def __init__(self):\n        self.index2word = {}\n"
    assert dropped(text + own) == []
    assert dropped(text + "\n\nclass Words:\n    def index2word(self):\n        pass\n") == []


def test_vectors_without_a_model_have_no_wv():
    text = "from gensim.models import {0}\n\nx = {0}.load('m')\nprint(x.wv.vocab)\n"
    assert dropped(text.format("Word2Vec"))[0].endswith("Today: key_to_index.")
    assert dropped(text.format("KeyedVectors"))[0].endswith("Today: key_to_index, without .wv.")


def test_the_advice_for_images_of_scipy_says_that_numbers_were_scaled():
    text = "import scipy.misc\n\nscipy.misc.{}(x)\n"
    for name in ("toimage", "imsave", "imresize", "imrotate"):
        (found,) = dropped(text.format(name))
        assert "np.uint8(255 * (a - a.min()) / (a.max() - a.min()))" in found


@pytest.mark.parametrize(
    ("test", "reported"),
    [
        ("hasattr(signal, 'kaiser')", False),
        ("hasattr(signal, 'kaiser') and x", False),
        ("not hasattr(signal, 'windows')", False),
        ("not hasattr(signal, 'kaiser')", True),
        ("hasattr(signal, 'windows')", True),
        ("hasattr(other, 'kaiser')", True),
    ],
)
def test_a_name_that_is_asked_for_is_no_finding(test, reported):
    text = "from scipy import signal\n\nif {}:\n    y = 1\nelse:\n    y = 2\n".format
    there = text(test).replace("y = 1", "y = signal.kaiser(5, 1)")
    elsewhere = text(f"not {test}").replace("y = 2", "y = signal.kaiser(5, 1)")
    assert bool(dropped(there)) == reported
    if " and " not in test and not test.startswith("not "):
        assert bool(dropped(elsewhere)) == reported
