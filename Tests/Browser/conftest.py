"""Fixtures: a browser, logs, and servers of Studio. Run the tests with Tools/checks/browser."""

import os
import pathlib
import re

import axe_playwright_python
import pytest
from playwright.sync_api import sync_playwright

import events
import logs
import screen
import studio

# Replaces the temporary folders of a run, which no reader of the documentation has.
SHORTEN_PATHS = r"""() => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    texts.currentNode.data = texts.currentNode.data.replace(/\/\S*pytest-\S*?\/log\b/, '/home/ana/log');
  }
}"""
AXE = (pathlib.Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()


def pytest_addoption(parser):
    parser.addoption("--screenshots", metavar="DIR", help="write the screenshots of the documentation")


# The browser


@pytest.fixture(scope="session")
def chromium():
    """Chromium. The name `rebound.example` leads to this machine, as a name under an attacker's control can."""
    arguments = ["--host-resolver-rules=MAP rebound.example 127.0.0.1"]
    if os.geteuid() == 0:
        arguments.append("--no-sandbox")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=os.environ["DAYBOOK_CHROMIUM"], args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def new_page(chromium):
    """Opens pages, each in a profile of its own. When the test ends, no page may have had a fault."""
    opened = []

    def open_page(**options):
        options = {"viewport": {"width": 1280, "height": 800}, "reduced_motion": "reduce",
                   "timezone_id": "Europe/Berlin", "locale": "en"} | options
        context = chromium.new_context(**options)
        context.set_default_timeout(20_000)
        page = screen.watched(context.new_page())
        opened.append(page)
        return page

    yield open_page
    faults = [fault for page in opened for fault in screen.faults(page)]
    for page in opened:
        page.context.close()
    assert faults == []


@pytest.fixture
def page(new_page):
    """A page in a window of 1,280 × 800 pixels. It may have no fault: see `screen.faults`."""
    return new_page()


@pytest.fixture
def screenshot(request):
    """Writes a screenshot for the documentation if the option --screenshots names a folder."""
    folder = request.config.getoption("--screenshots")

    def write(page, name):
        if folder is not None:
            pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
            page.evaluate(SHORTEN_PATHS)
            page.screenshot(path=pathlib.Path(folder) / f"{name}.png")

    return write


@pytest.fixture
def axe():
    """Returns what axe-core finds on a page: one line for each element."""

    def find(page):
        if not page.evaluate("() => 'axe' in window"):
            page.evaluate(AXE)
        results = page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")
        assert len(results["passes"]) > 10, "axe-core has checked next to nothing"
        return [f"{violation['id']} ({violation['impact']}): {node['target']} {node['failureSummary']}"
                for violation in results["violations"] for node in violation["nodes"]]

    return find


# Logs and servers, one for each file of tests


@pytest.fixture(scope="session")
def field_log(tmp_path_factory):
    """A log with settled, parked, conflicting and unsent events. Tests must not change it."""
    return logs.make_field_log(tmp_path_factory.mktemp("field") / "log")


@pytest.fixture(scope="session")
def long_log(tmp_path_factory):
    """A log of 3,000 events. Tests must not change it."""
    return studio.import_events(tmp_path_factory.mktemp("long") / "log", events.journey(3_000))


@pytest.fixture(scope="module")
def field(field_log):
    """A server that only reads the field log."""
    with studio.Studio(field_log) as server:
        screen.wait_until_folded(server)
        yield server


@pytest.fixture(scope="module")
def long(long_log):
    """A server that only reads the long log."""
    with studio.Studio(long_log) as server:
        screen.wait_until_folded(server)
        yield server


@pytest.fixture
def serve():
    """Starts servers that end with the test."""
    started = []

    def start(log, *options):
        started.append(studio.Studio(log, *options))
        return started[-1]

    yield start
    for server in started:
        server.stop()
