"""One line for each page that is done."""


def on_page_content(html, page, config, files):
    """Say which page it was."""
    print(f"{config.theme['language']}  {page.file.src_uri}", flush=True)
