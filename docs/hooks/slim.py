"""What no reader needs stays out of the site: source maps and the search's other languages."""


def on_files(files, config):
    """Leave these files of the theme where they are."""
    for file in list(files):
        if file.src_uri.endswith(".map") or "/lunr/" in file.src_uri:
            files.remove(file)
    return files
