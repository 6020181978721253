"""`python -m pages` writes the made parts of the migration guide."""

from pages import GUIDE
from pages.made import made

for name, text in made().items():
    (GUIDE / name).write_text(text, encoding="utf-8")
    print(GUIDE / name)
