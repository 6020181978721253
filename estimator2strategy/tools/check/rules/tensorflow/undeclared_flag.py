"""Flags and arguments of the command line that a program reads and never declares."""

import ast
import sys

from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader import unreached
from estimator2strategy.tools.reader.own_code import stored

# Flags that absl and TensorFlow declare, and what the object itself has.
GIVEN = {
    "append_flag_values", "append_flags_into_file", "find_module_defining_flag",
    "find_module_id_defining_flag", "flag_values_dict", "flags_by_module_dict",
    "flags_by_module_id_dict", "flags_into_string", "get_flag_value", "get_flags_for_module",
    "get_help", "get_key_flags_for_module", "is_gnu_getopt", "is_parsed",
    "key_flags_by_module_dict",
    "main_module_help", "mark_as_parsed", "module_help", "read_flags_from_files",
    "register_flag_by_module", "register_flag_by_module_id", "register_key_flag_for_module",
    "remove_flag_values", "set_default", "set_gnu_getopt", "unparse_flags", "validate_all_flags",
    "write_help_in_xml_format", "_parse_flags", "flagfile", "undefok", "help", "helpfull",
    "helpshort", "helpxml", "logtostderr", "alsologtostderr", "log_dir", "v", "verbosity",
    "logger_levels", "stderrthreshold", "showprefixforinfo", "run_with_pdb", "pdb_post_mortem",
    "pdb", "run_with_profiling", "profile_file", "use_cprofile_for_profiling", "only_check_args",
    "test_srcdir", "test_tmpdir", "test_random_seed", "test_randomize_ordering_seed",
    "xml_output_file", "op_conversion_fallback_to_while_loop", "runtime_oom_exit",
    "hbm_oom_exit", "test_loggers",
}  # fmt: skip
# Libraries that declare no flags.
_WITHOUT_FLAGS = set(sys.stdlib_module_names) | set(
    """
    Bio ConfigParser Crypto Cython Levenshtein MeCab MySQLdb OpenSSL PIL Queue SimpleITK StringIO
    absl albumentations annoy apex attr attrdict bert_serving boto3 botocore bs4 bson cPickle
    catboost click colorama coloredlogs cv2 cx_Oracle dateutil deepctr dill django docopt docx
    easydict editdistance elasticsearch emoji estimator2strategy faiss fastapi fastcache fasttext
    fire flask flask_cors ftfy fuzzywuzzy gensim gevent gin googleapiclient graphviz gunicorn gym
    h5py hdfs horovod html5lib hyperopt imageio imgaug imutils jieba jinja2 joblib kafka keras
    keras_applications keras_bert keras_contrib keras_preprocessing konlpy librosa lightgbm lmdb
    loguru lxml markdown matplotlib minio mlflow mmcv mmh3 moviepy mpi4py msgpack munch mxnet
    networkx nibabel nltk numba numpy nvidia oauth2client onnx opencc openpyxl optuna packaging
    pandas paramiko pathos peewee pkuseg plotly ply prettytable progressbar psutil psycopg2 pyarrow
    pycocotools pydicom pydot pydub pyhocon pyltp pymongo pymysql pynlpir pynvml pypinyin pyspark
    pytesseract pytest python_speech_features pytorch_pretrained_bert pytz pyworld rdkit redis
    regex requests rouge sacrebleu sacremoses schedule scipy seaborn sentence_transformers
    sentencepiece seqeval sh simplejson six skimage sklearn smart_open snownlp sortedcontainers
    soundfile spacy sqlalchemy statsmodels stop_words synonyms tabulate tensorboard tensorboardX
    tensorflow tensorflow_addons tensorflow_datasets tensorflow_hub tensorflow_probability
    tensorflow_text termcolor tf_keras tf_metrics tf_slim thop thulac tokenizers toml toolz torch
    torchtext torchvision tornado tqdm transformers typing_extensions ujson umap unidecode urllib2
    urllib3 wandb webrtcvad werkzeug wget wordcloud xgboost xlrd xlsxwriter xlwt xmltodict yacs
    yaml zhconv zhon zmq
    bert.modeling bert.optimization bert.tokenization google.cloud google.protobuf
    """.split()  # noqa: SIM905
)
_GROUPS = {"add_argument_group", "add_mutually_exclusive_group"}
_FLAGS = ("tf.flags.FLAGS.", "tf.app.flags.FLAGS.", "absl.flags.FLAGS.")


def find(source, context):
    yield from _absl(source, context.project)
    if "argparse" in source.modules:
        yield from _argparse(source, context.project)


def _absl(source, project):
    read = {}
    for node, scope in source.chains:
        if not isinstance(node, ast.Attribute):
            continue
        name = source.name(node, scope)
        if name is not None and name.startswith(_FLAGS):
            flag = name.partition(".FLAGS.")[2].partition(".")[0]
            if flag not in GIVEN and not flag.startswith("__"):
                read.setdefault(flag, node)
    declared = _declared(project) if read else None
    if declared is None:
        return
    for flag, node in read.items():
        if flag in declared or flag in stored(project) or unreached.is_tried(node, unreached.ANY):
            continue
        yield Hit(node, f"no DEFINE_... declares the flag {flag}")


def _declares_none(target):
    """True if a library that an import names is known to declare no flags."""
    module, last = target.module, target.name
    inner = [module, *([f"{module}.{last}"] if last else ())]
    names = {".".join(name.split(".")[:end]) for name in inner for end in (1, 2)}
    return not names.isdisjoint(_WITHOUT_FLAGS)


def _declared(project):
    """The flags that the program declares; None if it may declare others."""
    found = set()
    for source in project.sources:
        for target, _ in source.imports:
            if target.level or _declares_none(target):
                continue
            if not (source.follow(source, target) or "").startswith("@"):
                return None
        for call in source.calls:
            if call.last.startswith(("DEFINE", "define", "add_argument")):
                names = [call.value("name", 0), call.value("name", 1)]
                if call.last == "DEFINE_alias" or not isinstance(names[0], str):
                    return None
                found |= {n for n in names if isinstance(n, str)}
            elif call.last in ("__setattr__", "setattr", "define_flags", "declare_key_flag"):
                return None
    return found


def _argparse(source, project):
    made = {}
    for call in source.calls:
        if call.last not in ("parse_args",) or not isinstance(call.node.func, ast.Attribute):
            continue
        parser = source.call(call.node.func.value, call.scope)
        if parser is not None and parser.name == "argparse.ArgumentParser":
            made[call.node] = call
    declared = _arguments(source) if made else None
    if declared is None:
        return
    seen = set()
    for node, scope in source.chains:
        inner = node
        while isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Attribute):
            inner = inner.value
        if not isinstance(inner, ast.Attribute):
            continue
        found = source.assigned(inner.value, scope)
        if found is None or found[0] not in made or inner.attr in seen:
            continue
        if inner.attr in declared or inner.attr in stored(project) or inner.attr[:1] == "_":
            continue
        if not unreached.is_tried(node, unreached.ANY):
            seen.add(inner.attr)
            yield Hit(inner, f"no add_argument declares {inner.attr}")


def _arguments(source):
    """The names that all `add_argument` of a file give; None if there may be others."""
    found = set()
    for call in source.calls:
        if call.last in ("setattr", "set_defaults", "add_subparsers", "vars", "Namespace"):
            return None
        if call.name == "argparse.ArgumentParser":
            if call.is_open or call.argument("parents") is not None:
                return None
        elif call.last == "add_argument":
            name = _dest(call)
            if name is None:
                return None
            found.add(name)
        elif any(_is_parser(value, call, source) for value in _given_to(call.node)):
            return None  # somebody else adds to it
    return found


def _given_to(call):
    return (*call.args, *(keyword.value for keyword in call.keywords))


def _is_parser(value, call, source):
    """True if a value may be a parser, or a group of one."""
    made = source.calls_behind(value, call.scope)
    return any(m.name == "argparse.ArgumentParser" or m.last in _GROUPS for m in made)


def _dest(call):
    given = [call.source.constant(value, call.scope) for value in call.node.args]
    dest = call.value("dest")
    if call.argument("dest") is not None:
        return dest if isinstance(dest, str) else None
    if call.is_open or not given or not all(isinstance(value, str) for value in given):
        return None
    long = [value for value in given if value.startswith("--")]
    return (long or given)[0].lstrip("-").replace("-", "_")
