"""Flags that a program defines and reads."""

import ast
import sys
from collections.abc import Iterator

from estimator2strategy.tools.check.checking import Context
from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader import unreached
from estimator2strategy.tools.reader.own_code import stored
from estimator2strategy.tools.reader.project import Project
from estimator2strategy.tools.reader.source import Call, Import, Source, parents

_HOMES = ("tf.flags.DEFINE", "tf.app.flags.DEFINE", "absl.flags.DEFINE")
# Words of a program that may define a flag again all the same.
_TAKES_AWAY = ("remove_flag_values", "__delattr__", "delattr(", "FlagValues", "del FLAGS")
_OTHERS = {"DEFINE_alias", "DEFINE"}  # a name of another flag; a flag that is made elsewhere


def flag_of_two_modules(source: Source, context: Context) -> Iterator[Hit]:
    project = context.project
    imported = project.imports.at_top.get(source, ())
    if not imported:
        return
    homes, told = dict.fromkeys(flags_at_top(source), source), set()
    twice: dict[tuple[Source, Source, ast.stmt], list[str]] = {}
    for top, statement in imported:
        inner = closure(top, project)
        if source in inner:  # each imports the other: who is first depends on the start
            continue
        within: dict[str, Source] = {}
        for module in inner:
            for flag in flags_at_top(module):
                if within.setdefault(flag, module) is not module:
                    told.add(flag)  # a finding of the imported module, or of one below it
                first = homes.setdefault(flag, module)
                if first is not module and flag not in told:
                    told.add(flag)
                    twice.setdefault((first, module, statement), []).append(flag)
    if twice and any(_takes_away(other) for other in project.sources):
        return
    for (first, module, statement), flags in twice.items():
        yield _hit(source, first, module, statement, flags)


def _hit(
    source: Source, first: Source, module: Source, statement: ast.stmt, flags: list[str]
) -> Hit:
    flag, *others = flags
    which = f"the flag {flag!r}" + (f" and {len(others)} more" if others else "")
    where = f"{module.shown}:{flags_at_top(module)[flag].node.lineno}"
    if first is source:
        return Hit(flags_at_top(source)[flag].node, f"{where} defines {which}, too")
    there = f"{first.shown}:{flags_at_top(first)[flag].node.lineno}"
    return Hit(statement, f"{where} and {there} both define {which}")


def _takes_away(source: Source) -> bool:
    return any(word in source.text for word in _TAKES_AWAY)


def flags_at_top(source: Source) -> dict[str, Call]:
    """The first definition of each flag at the top of a file."""
    found: dict[str, Call] = {}
    for call in source.calls:
        if not (call.name or "").startswith(_HOMES) or call.is_open or call.last in _OTHERS:
            continue
        statement = next(parents(call.node), None)
        if not isinstance(statement, ast.Expr) or statement not in source.tree.body:
            continue
        if call.argument("allow_override") is None and call.argument("flag_values") is None:
            flag = call.value("name", 0)
            if isinstance(flag, str):
                found.setdefault(flag, call)
    return found


def closure(source: Source, project: Project) -> list[Source]:
    """A file, those that it imports, and those that they import."""
    found, todo = [], [source]
    while todo:
        module = todo.pop()
        if module not in found:
            found.append(module)
            todo += [other for other, _ in project.imports.at_top.get(module, ())]
    return found


# absl's own FLAGS parse nothing by themselves.
_PARSES = ("tf.flags.FLAGS.", "tf.app.flags.FLAGS.")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def late_flag(source: Source, context: Context) -> Iterator[Hit]:
    own = flags_at_top(source)
    if not own or not any(call.last == "run" for call in source.calls):
        return  # others import it: which of them reads FLAGS first is for them to say
    read = _first_read(source, context.project)
    if read is None:
        return
    line, where = read
    late = [flag for flag, call in own.items() if call.node.lineno > line]
    if late:
        more = f" and {len(late) - 1} more are" if len(late) > 1 else " is"
        message = f"{where} reads FLAGS before the flag {late[0]!r}{more} defined"
        yield Hit(own[late[0]].node, message)


def _first_read(source: Source, project: Project) -> tuple[int, str] | None:
    """(line of the file in which FLAGS are first read, place of the read); None if in none."""
    found = [(node.lineno, f"line {node.lineno}") for node in _reads(source)]
    for module, statement in project.imports.at_top.get(source, ()):
        inner = closure(module, project)
        if source in inner:
            continue
        reading = ((other, next(_reads(other), None)) for other in inner)
        at = next((f"{other.shown}:{node.lineno}" for other, node in reading if node), None)
        if at is not None:
            found.append((statement.lineno, at))
    return min(found, default=None)


def _reads(source: Source) -> Iterator[ast.Attribute]:
    """Flags that are read when a file is imported."""
    for node, scope in source.chains if "FLAGS" in source.text else ():
        if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
            continue
        if not _is_in_any_case(node):
            continue
        name = source.name(node, scope) or ""
        if name.startswith(_PARSES) and name.partition(".FLAGS.")[2].partition(".")[0] not in GIVEN:
            yield node


def _is_in_any_case(node: ast.AST) -> bool:
    """True if a file's code runs a node whenever it runs, in no function or condition."""
    inner = node
    for outer in parents(node):
        if isinstance(outer, _FUNCTIONS):
            if inner in outer.body:
                return False
        elif isinstance(outer, (ast.If, ast.IfExp, ast.BoolOp, ast.Lambda, ast.Try, ast.While)):
            return False
        inner = outer
    return True


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


def undeclared_flag(source: Source, context: Context) -> Iterator[Hit]:
    yield from _absl(source, context.project)
    if "argparse" in source.modules:
        yield from _argparse(source, context.project)


def _absl(source: Source, project: Project) -> Iterator[Hit]:
    read: dict[str, ast.Attribute] = {}
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


def _declares_none(target: Import) -> bool:
    """True if a library that an import names is known to declare no flags."""
    module, last = target.module, target.name
    inner = [module, *([f"{module}.{last}"] if last else ())]
    names = {".".join(name.split(".")[:end]) for name in inner for end in (1, 2)}
    return not names.isdisjoint(_WITHOUT_FLAGS)


def _declared(project: Project) -> set[str] | None:
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


def _argparse(source: Source, project: Project) -> Iterator[Hit]:
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


def _arguments(source: Source) -> set[str] | None:
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


def _given_to(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _is_parser(value: ast.expr, call: Call, source: Source) -> bool:
    """True if a value may be a parser, or a group of one."""
    made = source.calls_behind(value, call.scope)
    return any(m.name == "argparse.ArgumentParser" or m.last in _GROUPS for m in made)


def _dest(call: Call) -> str | None:
    given = [call.source.constant(value, call.scope) for value in call.node.args]
    dest = call.value("dest")
    if call.argument("dest") is not None:
        return dest if isinstance(dest, str) else None
    if call.is_open or not given or not all(isinstance(value, str) for value in given):
        return None
    long = [value for value in given if value.startswith("--")]
    return str((long or given)[0]).lstrip("-").replace("-", "_")


_DEFINING = ("tf.flags.DEFINE", "tf.app.flags.DEFINE", "absl.flags.DEFINE")
_TAKEN = {
    "alsologtostderr", "log_dir", "logger_levels", "logtostderr", "only_check_args", "pdb",
    "pdb_post_mortem", "profile_file", "run_with_pdb", "run_with_profiling",
    "showprefixforinfo", "stderrthreshold", "use_cprofile_for_profiling", "v", "verbosity",
}  # fmt: skip


def taken_flag(source: Source, context: Context) -> Iterator[Hit]:
    for call in source.calls:
        first = call.argument("name", 0)
        if not isinstance(first, ast.Constant) or first.value not in _TAKEN or call.is_open:
            continue
        if (call.name or "").startswith(_DEFINING) and call.argument("allow_override") is None:
            yield Hit(call.node, f"absl has a flag {first.value!r} already")
