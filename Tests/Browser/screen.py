"""What a test sees of a page: its faults, and the parts of each screen."""

import time

from playwright.sync_api import expect

# Other processes of the machine may slow the browser down.
expect.set_options(timeout=20_000)

TABS = ["timeline", "views", "outbox", "files"]

# Reports what the content security policy refuses, and every script of a log's content that was run.
WATCH = """
document.addEventListener('securitypolicyviolation',
  (event) => console.error(`refused by the policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
window.ran = () => console.error('a script of the log was run');
"""


def watched(page):
    """Records the faults of a page: errors and warnings of its console, exceptions, dialogs, requests elsewhere."""
    page.found_faults = []
    page.allowed_faults = []
    page.sent_requests = []
    page.add_init_script(WATCH)
    page.on("console", lambda message: message.type in ("error", "warning")
            and page.found_faults.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: page.found_faults.append(f"exception: {error}"))
    page.on("request", lambda request: page.sent_requests.append(request.url))

    def dismiss(dialog):
        page.found_faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    page.on("dialog", dismiss)
    return page


def faults(page):
    """The faults of a page, without those that the test allows."""
    return [fault for fault in page.found_faults if not any(part in fault for part in page.allowed_faults)]


def wait_until(condition, what, seconds=30):
    """Waits for a condition outside of the browser."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited {seconds} s in vain: {what}"
        time.sleep(0.02)


def wait_until_folded(server):
    """Waits until the server has read the whole log."""
    wait_until(lambda: (log := server.api("log"))["complete"] and log["viewsComplete"], "the log is read")


def show(page, server, fragment="timeline"):
    """Opens the address that the server has printed, at a screen, and waits until the screen has its data."""
    page.goto(f"{server.address}#{fragment}")
    wait_until_shown(page, fragment.split("?")[0])
    return page


def go(page, fragment):
    """Goes to another screen of the page by its URL."""
    page.evaluate("fragment => { location.hash = fragment; }", fragment)
    wait_until_shown(page, fragment.split("?")[0])


def wait_until_shown(page, tab):
    """Waits until a tab shows its data."""
    expect(page.locator(f".tab.{tab}")).to_be_visible()
    ready = {
        "timeline": ".timeline:not(.waiting) .count:not(:empty)",
        "views": ".views:not(.waiting) .count:not(:empty)",
        "outbox": ".outbox .tiles",
        "files": ".files .section >> nth=0",
    }
    expect(page.locator(ready[tab]).filter(has_not_text="searching…").first).to_be_attached()


def fragment(page):
    """The tab and parameters in the URL."""
    return page.evaluate("() => location.hash")


def rows(page):
    """The rows of the list on the screen that are loaded."""
    return page.locator(".list-row:not(.loading)")


def row_texts(page):
    """The text of the rows in the window, top to bottom."""
    return page.evaluate("""() => {
      const rows = [...document.querySelectorAll('.list:not([hidden]) .list-row:not(.loading)')];
      rows.sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top);
      return rows.map((row) => [...row.children].map((cell) => cell.textContent));
    }""")


def positions(page):
    """The positions of the rows on the screen, top to bottom."""
    return [int(row[0].replace(",", "")) for row in row_texts(page)]


def count(page):
    """The line that says how many rows there are."""
    return page.locator(".count").first


def detail(page):
    """The panel of the selected event."""
    return page.locator("aside.detail")


def section(page, title):
    """The section with a heading."""
    return page.locator("section.section").filter(has=page.locator("h2", has_text=title))
