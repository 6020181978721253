"""Gives each export to one consumer, and prints the greatest differences to its predictions.

    python tests/exports/consumers.py CONSUMER FOLDER

It needs TensorFlow and the consumer, and nothing of this package. The last line of its output is
JSON: kind -> difference, null for a conversion that is not run, or the first line of the error.
"""

import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import cases
import numpy as np
import tensorflow as tf


def tensors_of(case):
    return {name: tf.constant(value) for name, value in cases.inputs_of(case).items()}


def answer_of(loaded, case):
    return loaded.signatures[case["signature"]](**tensors_of(case))[case["output"]]


def loaded(folder, case):
    return answer_of(tf.saved_model.load(folder, ["serve"]), case).numpy()


def trained(folder, case):
    """Trains one step and saves again; what the new model says is compared with the trained one."""
    model = tf.saved_model.load(folder, ["serve"])
    variables = [v for v in model.variables if v.dtype == tf.float32]
    if not variables:
        raise RuntimeError("there are no variables")
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(answer_of(model, case) ** 2)
    gradients = tape.gradient(loss, variables)
    if all(gradient is None for gradient in gradients):
        raise RuntimeError("no variable has a gradient")
    for variable, gradient in zip(variables, gradients):
        if gradient is not None:
            variable.assign_sub(0.01 * gradient)
    changed = answer_of(model, case).numpy()
    with tempfile.TemporaryDirectory() as again:
        tf.saved_model.save(model, again, signatures=dict(model.signatures))
        saved = answer_of(tf.saved_model.load(again), case).numpy()
    if np.array_equal(changed, case["predictions"]):
        raise RuntimeError("the step changed nothing")
    return np.array(case["predictions"]) + (saved - changed)


def saved_again(folder, case):
    """Saves what was loaded, with its signatures, and answers from the new model."""
    model = tf.saved_model.load(folder, ["serve"])
    with tempfile.TemporaryDirectory() as again:
        tf.saved_model.save(model, again, signatures=dict(model.signatures))
        return answer_of(tf.saved_model.load(again), case).numpy()


def tfsm_layer(folder, case):
    import keras

    layer = keras.layers.TFSMLayer(folder, call_endpoint=case["signature"])
    inputs = tensors_of(case)
    fed = next(iter(inputs.values())) if len(inputs) == 1 else inputs
    return layer(fed)[case["output"]].numpy()


def saved_model_cli(folder, case):
    with tempfile.TemporaryDirectory() as scratch:
        given = []
        for name, value in cases.inputs_of(case).items():
            path = os.path.join(scratch, f"{name}.npz")
            np.savez(path, value.astype("S") if value.dtype == object else value)
            given.append(f"{name}={path}")
        # The command, and not its entry point, whose path depends on the environment.
        module = "tensorflow.python.tools.saved_model_cli"
        asked = ["--dir", folder, "--tag_set", "serve", "--signature_def", case["signature"]]
        run(
            [
                sys.executable,
                "-m",
                module,
                "run",
                *asked,
                "--inputs",
                ";".join(given),
                "--outdir",
                scratch,
            ]
        )
        return np.load(os.path.join(scratch, f"{case['output']}.npy"))


def serving_api(folder, case):
    """As the server answers a PredictRequest; the server itself is no Python package."""
    from tensorflow_serving.apis import predict_pb2

    request = predict_pb2.PredictRequest()
    request.model_spec.signature_name = case["signature"]
    for name, value in cases.inputs_of(case).items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    request = predict_pb2.PredictRequest.FromString(request.SerializeToString())
    response = predict_pb2.PredictResponse()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        graph = tf.compat.v1.saved_model.load(session, ["serve"], folder)
        signature = graph.signature_def[request.model_spec.signature_name]
        if signature.method_name != "tensorflow/serving/predict":
            raise RuntimeError(f"its method is {signature.method_name}")
        fed = {signature.inputs[n].name: tf.make_ndarray(v) for n, v in request.inputs.items()}
        outputs = {name: info.name for name, info in signature.outputs.items()}
        for name, value in session.run(outputs, fed).items():
            response.outputs[name].CopyFrom(tf.make_tensor_proto(value))
    response = predict_pb2.PredictResponse.FromString(response.SerializeToString())
    return tf.make_ndarray(response.outputs[case["output"]])


def tflite(folder, case, ops=("TFLITE_BUILTINS",)):
    from ai_edge_litert.interpreter import Interpreter

    converter = tf.lite.TFLiteConverter.from_saved_model(
        folder, signature_keys=[case["signature"]], tags={"serve"}
    )
    converter.target_spec.supported_ops = [getattr(tf.lite.OpsSet, name) for name in ops]
    runner = Interpreter(model_content=converter.convert()).get_signature_runner(case["signature"])
    return runner(**cases.inputs_of(case))[case["output"]]


def tflite_select(folder, case):
    return tflite(folder, case, ("TFLITE_BUILTINS", "SELECT_TF_OPS"))


def onnx(folder, case):
    import onnxruntime

    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "model.onnx")
        asked = ["--saved-model", folder, "--tag", "serve", "--signature_def", case["signature"]]
        run([sys.executable, "-m", "tf2onnx.convert", *asked, "--opset", "17", "--output", path])
        session = onnxruntime.InferenceSession(path)
    fed = {one.name: _value(one.name, case) for one in session.get_inputs()}
    return session.run([case["output"]], fed)[0]


def _value(name, case):
    inputs = cases.inputs_of(case)
    return inputs.get(name.partition(":")[0], next(iter(inputs.values())))


def openvino(folder, case):
    import openvino as ov

    # On a CPU with bfloat16 it computes in that, and is 3e-3 away.
    precise = {"INFERENCE_PRECISION_HINT": "f32"}
    compiled = ov.compile_model(ov.convert_model(folder), "CPU", precise)
    fed = [_value(one.get_any_name(), case) for one in compiled.inputs]
    answers = compiled(fed)
    for output in compiled.outputs:
        if case["output"] in {name.partition(":")[0] for name in output.get_names()}:
            return answers[output]
    return answers[compiled.outputs[0]]


def tensorflowjs(folder, case):
    with tempfile.TemporaryDirectory() as scratch:
        asked = ["--input_format=tf_saved_model", f"--signature_name={case['signature']}"]
        run(
            [
                sys.executable,
                "-m",
                "tensorflowjs.converters.converter",
                *asked,
                "--saved_model_tags=serve",
                folder,
                os.path.join(scratch, "js"),
            ]
        )
        if not os.path.exists(os.path.join(scratch, "js", "model.json")):
            raise RuntimeError("no model.json was written")
    return


def run(command):
    """Runs a command; the last line of its output is the error's, if it fails."""
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        lines = [line for line in (ran.stdout + ran.stderr).splitlines() if line.strip()]
        named = [line for line in lines if "Error" in line]
        raise RuntimeError((named or lines or ["no output"])[-1])


_FUNCTIONS = [loaded, trained, saved_again, tfsm_layer, saved_model_cli, serving_api]
_FUNCTIONS += [tflite, tflite_select, onnx, openvino, tensorflowjs]
CONSUMERS = {function.__name__: function for function in _FUNCTIONS}


def main():
    consumer, folder = sys.argv[1:3]

    def answers(inside, case):
        return CONSUMERS[consumer](os.path.join(inside, "export"), case)

    print(json.dumps(cases.differences(folder, answers)))


if __name__ == "__main__":
    main()
