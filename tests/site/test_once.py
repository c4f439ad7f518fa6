"""What is understood once: a template is compiled again only when its source has changed."""

import once
import pytest
from jinja2 import DictLoader, Environment


@pytest.fixture
def compilations(monkeypatch) -> list[str]:
    """The names of the templates that Jinja has compiled."""
    names, compile_it = [], Environment.compile

    def compile_and_note(env, source, name=None, filename=None, **options):
        names.append(name)
        return compile_it(env, source, name, filename, **options)

    monkeypatch.setattr(Environment, "compile", compile_and_note)
    return names


def rendered(source: str, cache) -> str:
    """A template in a new environment, as each build has one."""
    env = Environment(loader=DictLoader({"a.html": source}), bytecode_cache=cache)
    return env.get_template("a.html").render(x=1)


def test_template_is_compiled_when_its_source_is_new(compilations):
    cache = type(once.templates)()
    assert [rendered("{{ x }}", cache), rendered("{{ x }}", cache)] == ["1", "1"]
    assert compilations == ["a.html"]
    assert rendered("{{ x + 1 }}", cache) == "2"
    assert compilations == ["a.html"] * 2


STOPS_AT_COMPILATION = """
from jinja2 import Environment

compile_it = Environment.compile

def compile_or_stop(env, source, name=None, filename=None, **options):
    own_or_icon = "/material/" not in filename or "/.icons/" in filename
    assert own_or_icon, f"compiles {filename}"
    return compile_it(env, source, name, filename, **options)

def on_config(config):
    Environment.compile = compile_or_stop
"""


def test_a_build_compiles_no_template_of_the_theme(project):
    (project.root / "docs/hooks/csp.py").write_text(STOPS_AT_COMPILATION)
    done = project.build()
    assert done.returncode == 0, done.stderr


def test_style_sheet_is_read_once():
    assert once.rules("a{color:red}") is once.rules("a{color:red}")
