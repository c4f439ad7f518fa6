"""What axe has to say of an opened page."""

from axe_playwright_python.sync_playwright import Axe

RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
    "resultTypes": ["violations"],  # else it describes all that is right as well
}
# The rules that look at colours: in another scheme, the same page can break no others.
OF_COLOURS = {**RULES, "runOnly": ["color-contrast", "link-in-text-block"]}

# What fades in has a colour of its own at every moment: the last one counts.
AT_REST = """async () => {
  const ends = ({ timeline, effect }) => // not what follows a scroll bar, and not what is endless
    timeline === document.timeline && effect.getComputedTiming().endTime !== Infinity;
  const moving = () => document.getAnimations().filter(ends);
  while (moving().length) await Promise.allSettled(moving().map(animation => animation.finished));
}"""


def violations(page, rules=RULES) -> str:
    """A report of the rules that a page violates; empty if there are none."""
    page.emulate_media(reduced_motion="reduce")  # nothing new starts to fade, as under the mouse
    page.evaluate(AT_REST)
    results = Axe().run(page, options=rules)
    return results.generate_report() if results.violations_count else ""
