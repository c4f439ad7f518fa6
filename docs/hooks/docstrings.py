"""Docstrings for the page `reference`: the signature in front, the examples as code.

An extension of griffe, which reads them for mkdocstrings. Neither a signature nor an example with
its `>>>` runs when it is copied, so both go without a copy button.
"""

import re

import griffe

WIDTH = 36  # what a phone shows of a line of code


class Docstrings(griffe.Extension):
    """Rewrites every docstring of a package."""

    def on_package(self, *, pkg: griffe.Module, **kwargs) -> None:
        """Start where the whole package is known, dataclasses included."""
        _rewrite(pkg)


def _rewrite(parent: griffe.Object) -> None:
    for member in parent.members.values():
        if member.is_alias:
            continue
        if member.docstring:
            member.docstring.value = examples_as_code(member.docstring.value)
            if member.is_function or member.is_class:
                member.docstring.value = (
                    f"{_fence('py', signature(member))}\n\n{member.docstring.value}"
                )
        _rewrite(member)


def examples_as_code(text: str) -> str:
    """Put a fence around each run of lines that begins with `>>>`."""
    return re.sub(r"(?m)^>>> .*(?:\n.+)*", lambda match: _fence("pycon", match[0]), text)


def signature(obj: griffe.Function | griffe.Class) -> str:
    """The call, on one line if it is short, else with one argument per line."""
    arguments = []
    for parameter in obj.parameters:
        if parameter.kind is griffe.ParameterKind.keyword_only and "*" not in arguments:
            arguments.append("*")
        default = "" if parameter.default is None else f"={parameter.default}"
        arguments.append(parameter.name + default)
    arguments = arguments[1:] if arguments[:1] in (["self"], ["cls"]) else arguments
    name = f"{obj.parent.name}.{obj.name}" if "classmethod" in obj.labels else obj.name
    line = f"{name}({', '.join(arguments)})"
    if len(line) <= WIDTH:
        return line
    return f"{name}(\n" + "".join(f"    {argument},\n" for argument in arguments) + ")"


def _fence(language: str, code: str) -> str:
    return f"```{{ .{language} .no-copy }}\n{code}\n```"
