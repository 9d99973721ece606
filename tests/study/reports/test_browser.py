"""In a headless Chromium a page fits a phone, has every shape in its place, runs no script, and prints."""

import shutil
import subprocess

import pytest

from tests.study.reports.pages_made import paid_study

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
]
# Tells the window around a page what fits. A window is not as narrow as a phone, and a frame in it may be.
MEASURE = """<script>
const wide = document.documentElement, boxes = [...document.querySelectorAll("svg *")].map((one) => {
  const box = one.getBoundingClientRect(), all = one.closest("svg").getBoundingClientRect();
  return box.width === 0 || (box.left >= all.left - 1 && box.right <= all.right + 1 && box.bottom <= all.bottom + 1);
});
parent.postMessage(`measured ${innerWidth} ${wide.scrollWidth <= innerWidth} ${boxes.every(Boolean)}`, "*");
</script>"""
AROUND = """<script>onmessage = (event) => { document.title = event.data; };</script>
<iframe src="page.html" style="width:WIDTHpx;height:900px;border:0"></iframe>"""

pytestmark = pytest.mark.skipif(BROWSER is None, reason="there is no Chromium here")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    study, ledger = paid_study(folder)
    study.histogram("region", epsilon=0.5).report(folder / "report.html", ledger=ledger)
    return folder / "report.html"


def chromium(folder, *words):
    """Runs a fresh browser, and returns what it prints."""
    command = [str(BROWSER), *QUIET, f"--user-data-dir={folder / 'profile'}", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


@pytest.mark.takes(20, "a browser starts")
@pytest.mark.parametrize("width", [390, 1200])
def test_a_page_fits_its_screen_and_drawings_hold_their_shapes(page, tmp_path, width):
    text = page.read_text(encoding="utf-8").replace("default-src &#x27;none&#x27;; style-src", "style-src")
    copy = tmp_path / "page.html"
    copy.write_text(text.replace("</body>", f"{MEASURE}</body>"), encoding="utf-8")
    (tmp_path / "around.html").write_text(AROUND.replace("WIDTH", str(width)), encoding="utf-8")
    shown = chromium(tmp_path, "--window-size=1300,1000", "--dump-dom", (tmp_path / "around.html").as_uri())
    assert f"measured {width} true true" in shown


@pytest.mark.takes(20, "a browser starts")
def test_no_script_runs_in_a_page(page, tmp_path):
    copy = tmp_path / "page.html"
    copy.write_text(page.read_text(encoding="utf-8").replace("</body>", f"{MEASURE}</body>"), encoding="utf-8")
    shown = chromium(tmp_path, "--dump-dom", copy.as_uri())
    assert "<title>Report of a private release</title>" in shown


@pytest.mark.takes(20, "a browser starts")
def test_a_page_prints(page, tmp_path):
    chromium(tmp_path, f"--print-to-pdf={tmp_path / 'page.pdf'}", page.as_uri())
    made = (tmp_path / "page.pdf").read_bytes()
    assert made.startswith(b"%PDF")
    assert made.count(b"/Type /Page\n") >= 2
