"""The page that is being made. MkDocs makes one after the other, so one is enough."""

from dataclasses import dataclass, field


@dataclass
class Page:
    """What the forms of Markdown need to know about the page they stand on."""

    name: str = ""
    words: dict = field(default_factory=dict)
    values: dict = field(default_factory=dict)  # the names that its example has bound
    sections: dict[str, str] = field(default_factory=dict)  # that have not been shown yet
    given: dict = field(default_factory=dict)  # names that every page has besides
    said: dict[str, str] | None = None  # by live values, when the example ran by itself
    rebound: set[str] = field(default_factory=set)  # those with more than one value on the page
    listings: dict[str, list[str]] = field(default_factory=dict)  # code explained line by line
    explained: set[tuple[str, int]] = field(default_factory=set)

    def begin(self, **what) -> None:
        """Forget the last page."""
        self.__init__(**what)


page = Page()


def inline_form(config, name: str, write) -> None:
    """Let `#!name …` in inline code become what `write` returns."""
    forms = config.mdx_configs.setdefault("pymdownx.inlinehilite", {})
    forms.setdefault("custom_inline", []).append({"name": name, "class": name, "format": write})


def fence_form(config, name: str, write) -> None:
    """Let a fence of this name become what `write` returns."""
    forms = config.mdx_configs.setdefault("pymdownx.superfences", {})
    forms.setdefault("custom_fences", []).append({"name": name, "class": name, "format": write})
