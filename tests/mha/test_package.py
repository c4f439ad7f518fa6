"""What the package promises as a whole: light to import, easy to copy, silent, and explained."""

import ast
import doctest
import importlib
import inspect
import shutil
import sys
from pathlib import Path

import pytest
from mha_ways import run_python

import mha

FOLDER = Path(mha.__file__).parent
OWN = sorted(path.name for path in FOLDER.glob("*.py"))
NAMES = [
    "softmax",
    "attention",
    "split_heads",
    "merge_heads",
    "Projections",
    "multi_head_attention",
    "unpack_qkv",
    "compare",
    "Comparison",
    "parity",
    "ParityReport",
    "MultiHeadAttention",
    "torch_attention",
    "masks_from_torch",
]
BLOCK_TORCH = "import sys; sys.modules['torch'] = None\n"


def trees():
    for name in OWN:
        yield name, ast.parse((FOLDER / name).read_text(encoding="utf-8"))


def test_public_names():
    assert sorted(mha.__all__) == sorted(NAMES)
    assert len(mha.__all__) == len(NAMES)
    assert set(NAMES) <= set(dir(mha))
    for name in NAMES:
        assert getattr(mha, name).__name__ == name
    namespace = {}
    exec("from mha import *", namespace)
    assert set(namespace) - {"__builtins__"} == set(NAMES)


def test_import_does_not_load_torch():
    program = (
        "import sys, mha\n"
        "mha.attention([[1]], [[1]], [[1]])\n"
        "mha.compare([1.0], [1.0])\n"
        "mha.parity, mha.ParityReport\n"
        "print('torch' in sys.modules)\n"
        "mha.MultiHeadAttention\n"
        "print('torch' in sys.modules)\n"
    )
    assert run_python("-c", program).split() == ["False", "True"]


def test_without_torch():
    program = BLOCK_TORCH + (
        "import numpy as np, mha\n"
        "eye = np.eye(2)\n"
        "p = mha.Projections(eye, eye, eye, eye)\n"
        "mha.multi_head_attention(eye, projections=p, num_heads=2, causal=True)\n"
        "mha.merge_heads(mha.split_heads(eye, 2))\n"
        "mha.unpack_qkv(np.zeros(6))\n"
        "from mha import layouts\n"
        "q, k, v = layouts.unpack(np.zeros(6), layout='block', num_heads=2)\n"
        "layouts.pack(q, k, v, layout='block', num_heads=2)\n"
        "print(mha.compare([1.0], [1.0]).ok)\n"
        "for call in (lambda: mha.MultiHeadAttention, lambda: mha.torch_attention,\n"
        "             lambda: mha.masks_from_torch, lambda: mha.parity(None, None)):\n"
        "    try:\n"
        "        call()\n"
        "    except ImportError as error:\n"
        "        print('torch' in str(error))\n"
        "try:\n"
        "    mha.nothing\n"
        "except AttributeError:\n"
        "    print(hasattr(mha, 'nothing'))\n"
    )
    assert run_python("-c", program).split() == ["True"] * 5 + ["False"]


def test_the_folder_works_under_another_name(tmp_path):
    for name in OWN:
        target = tmp_path / "copied" / "deeper" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(FOLDER / name, target)
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); sys.modules['mha'] = None\n"
        "import torch, pickle\n"
        "from copied.deeper import MultiHeadAttention, parity, softmax\n"
        "reference = torch.nn.MultiheadAttention(6, 2)\n"
        "layer = MultiHeadAttention.from_torch(reference)\n"
        "pickle.loads(pickle.dumps(layer))\n"
        "print(parity(layer, reference).ok, softmax([0.0])[0])\n"
    )
    assert run_python("-c", program).split() == ["True", "1.0"]


def test_imports_are_relative_or_of_numpy_and_torch():
    allowed = {"numpy", "torch", *sys.stdlib_module_names}
    for name, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and not node.level:
                assert node.module.split(".")[0] in allowed, name
            if isinstance(node, ast.Import):
                assert {alias.name.split(".")[0] for alias in node.names} <= allowed, name


def test_no_file_bears_the_name_of_a_function():
    assert not {path.stem for path in FOLDER.glob("*.py")} & set(NAMES)
    for stem in ("functions", "layer", "layouts", "report"):
        importlib.import_module(f"mha.{stem}")
    assert all(not inspect.ismodule(getattr(mha, name)) for name in NAMES)


def test_no_assert_and_no_print():
    for name, tree in trees():
        for node in ast.walk(tree):
            assert not isinstance(node, ast.Assert), name
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id != "print", name


def code_lines(node):
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return node.end_lineno - body[0].lineno + 1 if body else 0


def test_functions_are_short():
    for name, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                assert code_lines(node) <= 25, f"{name}: {node.name}"


def public():
    for name in NAMES:
        thing = getattr(mha, name)
        yield pytest.param(thing, id=name)
        if inspect.isclass(thing):
            for key in vars(thing):
                if key in ("from_torch", "to_torch", "to_numpy"):
                    yield pytest.param(getattr(thing, key), id=f"{name}.{key}")


def test_public_methods_are_explained():
    for name in NAMES:
        thing = getattr(mha, name)
        for key, value in vars(thing).items() if inspect.isclass(thing) else ():
            assert key.startswith("_") or value.__doc__ or not callable(value)


@pytest.mark.parametrize("thing", list(public()))
def test_docstrings(thing):
    doc = inspect.getdoc(thing)
    first = doc.splitlines()[0]
    assert first.endswith((".", "?"))
    examples = doctest.DocTestParser().get_examples(doc)
    assert examples
    name = thing.__name__
    if inspect.isfunction(thing) and name not in ("to_torch", "to_numpy", "parity"):
        assert "Source: " in doc
        assert "Error`" in doc


def test_signatures():
    expected = {
        "softmax": "(scores, axis=-1)",
        "attention": (
            "(query, key, value, *, allow=None, score_bias=None, causal=False, scale=None)"
        ),
        "split_heads": "(x, num_heads)",
        "merge_heads": "(x)",
        "Projections": "(w_q, w_k, w_v, w_o, b_q=None, b_k=None, b_v=None, b_o=None)",
        "multi_head_attention": (
            "(query, key=None, value=None, *, projections, num_heads, num_kv_heads=None, "
            "allow=None, key_allow=None, score_bias=None, causal=False)"
        ),
        "unpack_qkv": "(packed, *, layout='block', num_heads=None)",
        "torch_attention": (
            "(query, key, value, *, allow=None, score_bias=None, causal=False, scale=None, "
            "dropout_p=0.0, need_weights=True)"
        ),
        "MultiHeadAttention": (
            "(d_model, num_heads, *, num_kv_heads=None, kdim=None, vdim=None, bias=True, "
            "dropout=0.0, device=None, dtype=None)"
        ),
        "masks_from_torch": "(attn_mask=None, key_padding_mask=None, *, num_heads=None)",
        "compare": "(actual, expected, *, rtol=None, scale=None, name='values')",
        "Comparison": "(name, ok, reason, max_error, tolerance)",
        "parity": (
            "(layer, reference, query=None, key=None, value=None, *, allow=None, key_allow=None, "
            "score_bias=None, causal=False, rtol=None, seed=0)"
        ),
        "ParityReport": "(rows)",
    }
    assert set(expected) == set(NAMES)
    for name, text in expected.items():
        assert bare(getattr(mha, name)) == text
    assert bare(mha.MultiHeadAttention.forward) == (
        "(self, query, key=None, value=None, *, allow=None, key_allow=None, score_bias=None, "
        "causal=False, need_weights=True)"
    )
    assert bare(mha.MultiHeadAttention.from_torch) == "(source)"
    assert bare(mha.MultiHeadAttention.to_torch) == "(self)"
    assert bare(mha.MultiHeadAttention.to_numpy) == "(self)"


def bare(thing):
    signature = inspect.signature(thing)
    empty = inspect.Parameter.empty
    parameters = [p.replace(annotation=empty) for p in signature.parameters.values()]
    return str(inspect.Signature(parameters))
