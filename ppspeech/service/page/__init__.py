"""The page that a server sends to browsers: its files, and what reads them."""

from ppspeech.service.page.files import page_files

__all__ = ["page_files"]
