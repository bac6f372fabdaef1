"""Prints how long the pages of Studio take on a large log, and how much memory they need, each beside the number
that is wanted. It fails if something does not work, never because of a time.

    Tools/checks/browser --benchmark [--events 1000000] [--log FOLDER] [--json FILE]

The log is generated and imported. With --log it stays in that folder and is used again.
"""

import argparse
import json
import os
import pathlib
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time

from playwright.sync_api import sync_playwright

import events
import screen
import studio

# The last event that has it is among the oldest: a search from the newest on finds it late.
RARE = "the lighthouse keeper"


def many_events(count):
    """`count` events; one in 100,000, and one of the first hundred, has the rare text."""
    for number, event in enumerate(events.journey(count, seed=7)):
        if number == 50 or number % 100_000 == 60_000:
            event = events.note_added(f"rare-{number}", f"rare-{number}", number * 1.5, RARE)
        yield event


def make_log(folder, count):
    """Imports the events into a folder that has no log yet."""
    begun = time.monotonic()
    process = subprocess.Popen(
        [studio.logtool_path(), "import", folder, "-"], stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    batch = []
    for event in many_events(count):
        batch.append(event)
        if len(batch) == 10_000:
            process.stdin.write(events.lines(batch))
            batch = []
    process.stdin.write(events.lines(batch))
    process.stdin.close()
    if process.wait() != 0:
        sys.exit(f"benchmark: the import failed with exit code {process.returncode}")
    print(f"made a log of {count:,} events in {time.monotonic() - begun:.0f} s", file=sys.stderr)


def resident(process_id):
    """The resident memory of a process in MiB; None if the system does not tell."""
    try:
        for line in pathlib.Path(f"/proc/{process_id}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return None


def renderers(browser):
    """The process ids of the browser's renderers."""
    session = browser.new_browser_cdp_session()
    listed = session.send("SystemInfo.getProcessInfo")["processInfo"]
    session.detach()
    return [process["id"] for process in listed if process["type"] == "renderer"]


# Each returns milliseconds by the page's clock, from an action to what the reader sees.

FIRST_SCREEN = """() => new Promise((resolve) => {
  const check = () => {
    if (document.querySelector('.list-row:not(.loading)')) requestAnimationFrame(() => resolve(performance.now()));
    else requestAnimationFrame(check);
  };
  check();
})"""

# Scrolls through the list at a reader's speed and counts the frames.
FRAMES = """async () => {
  const list = document.querySelector('.list.events');
  const start = performance.now();
  let frames = 0;
  let longest = 0;
  let last = start;
  while (performance.now() - start < 3000) {
    await new Promise((resolve) => requestAnimationFrame(resolve));
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    frames += 1;
    list.scrollTop += 40;
  }
  return { rate: frames / ((performance.now() - start) / 1000), longest };
}"""

IDLE_FRAMES = """async () => {
  const start = performance.now();
  let frames = 0;
  while (performance.now() - start < 1000) {
    await new Promise((resolve) => requestAnimationFrame(resolve));
    frames += 1;
  }
  return frames / ((performance.now() - start) / 1000);
}"""

# From the last letter of the search to the first hits, and to the complete answer.
SEARCH = """(text) => new Promise((resolve) => {
  const field = document.querySelector('input[type=search]');
  const count = document.querySelector('.timeline .count');
  field.value = text;
  const start = performance.now();
  field.dispatchEvent(new Event('input', { bubbles: true }));
  let first = null;
  const check = () => {
    const isOther = location.hash.includes('text=') && !document.querySelector('.timeline.waiting');
    const hits = /([\\d,]+) hits? so far/.exec(count.textContent);
    if (first === null && isOther && ((hits && hits[1] !== '0') || / of /.test(count.textContent))) first = performance.now() - start;
    if (isOther && / of /.test(count.textContent)) resolve({ first, complete: performance.now() - start, count: count.textContent });
    else requestAnimationFrame(check);
  };
  requestAnimationFrame(check);
})"""

# From a movement of the slider to the rows at its position.
SLIDER = """(position) => new Promise((resolve) => {
  const slider = document.querySelector('.slider input');
  const count = document.querySelector('.views .count');
  const text = `at position ${position.toLocaleString('en')},`;
  slider.value = String(position);
  const start = performance.now();
  slider.dispatchEvent(new Event('input', { bubbles: true }));
  const check = () => {
    if (count.textContent.includes(text) && !document.querySelector('.views.waiting')) resolve(performance.now() - start);
    else requestAnimationFrame(check);
  };
  requestAnimationFrame(check);
})"""


class Figures:
    """What was measured; prints a line for each."""

    def __init__(self):
        self.rows = []

    def add(self, name, value, unit, wanted=None):
        self.rows.append({"name": name, "value": None if value is None else round(value, 1), "unit": unit, "wanted": wanted})
        shown = "not known" if value is None else f"{value:,.0f} {unit}"
        print(f"{name:<58} {shown:>12}   {'' if wanted is None else 'wanted: ' + wanted}", flush=True)


def measure(page, server, figures, count):
    page.goto(server.address)
    figures.add("first screen after the page is loaded, all events read", first_screen(page, server), "ms", "≤ 300 ms")
    idle = page.evaluate(IDLE_FRAMES)
    frames = page.evaluate(FRAMES)
    figures.add("frames per second of this browser at rest", idle, "fps")
    figures.add("frames per second while scrolling", frames["rate"], "fps", "the display's rate")
    figures.add("longest frame while scrolling", frames["longest"], "ms")
    page.evaluate("() => { const list = document.querySelector('.list.events'); list.scrollTop = list.scrollHeight; }")
    begun = time.monotonic()
    page.wait_for_function("() => document.querySelector('.list-row:not(.loading) .cell')?.textContent.length <= 2")
    figures.add("last rows after a jump to the end of the list", (time.monotonic() - begun) * 1000, "ms")
    # Another text each time: the server may keep answers.
    for name, text in [("rare", RARE), ("frequent", "market opens"), ("absent", "nothing has this text")]:
        screen.go(page, "timeline")
        page.wait_for_function("() => /^[\\d,]+ events$/.test(document.querySelector('.timeline .count').textContent)")
        found = page.evaluate(SEARCH, text)
        if name != "absent":
            figures.add(f"text search, {name} text: first hits", found["first"], "ms", "≤ 300 ms")
        figures.add(f"text search, {name} text: complete", found["complete"], "ms", "≤ 1,500 ms")

    screen.wait_until_folded(server)
    choice = random.Random(3)
    for view in ["notes", "cities", "progress"]:
        page.goto("about:blank")
        screen.show(page, server, f"views?view={view}&at={count // 2}")
        page.wait_for_function(f"() => document.querySelector('.views .count').textContent.includes('{count // 2:,}')")
        near = [page.evaluate(SLIDER, count // 2 + step) for step in [1, 2, 1, 0, -1, -2, -1, 5, 6, 7]]
        far = [page.evaluate(SLIDER, choice.randrange(1, count)) for _ in range(8)]
        figures.add(f"slider, {view}: neighbouring position, median", statistics.median(near), "ms", "≤ 100 ms")
        figures.add(f"slider, {view}: neighbouring position, worst", max(near), "ms", "≤ 100 ms")
        figures.add(f"slider, {view}: any position, median", statistics.median(far), "ms", "≤ 2,000 ms")
        figures.add(f"slider, {view}: any position, worst", max(far), "ms", "≤ 2,000 ms")


def first_screen(page, server):
    """The median of three loads, from the end of loading the page to its first rows."""
    times = []
    for _ in range(3):
        page.goto("about:blank")
        page.goto(server.address, wait_until="commit")
        shown = page.evaluate(FIRST_SCREEN)
        loaded = page.evaluate("() => performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
        times.append(max(0, shown - loaded))
    return statistics.median(times)


def run(log, options):
    figures = Figures()
    size = sum(file.stat().st_size for file in log.rglob("*") if file.is_file())
    with studio.Studio(log) as server, sync_playwright() as playwright:
        begun = time.monotonic()
        screen.wait_until(lambda: server.api("log")["complete"], "the log is read", 600)
        read = time.monotonic() - begun
        screen.wait_until(lambda: server.api("log")["viewsComplete"], "the log is folded", 600)
        folded = time.monotonic() - begun
        count = server.api("log")["last"]
        print(f"{server.api('log')['events']:,} events, {size / 1048576:.1f} MiB on disk, "
              f"{server.api('log')['lineBytes'] / 1048576:.0f} MiB of lines; {studio.logtool_path()}; "
              f"{platform.machine()}, {os.cpu_count()} cores")
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=os.environ["DAYBOOK_CHROMIUM"], args=arguments)
        page = screen.watched(browser.new_page(viewport={"width": 1280, "height": 800}))
        page.set_default_timeout(120_000)
        figures.add("the whole log is read for the timeline", read * 1000, "ms")
        figures.add("the whole log is folded for the views", folded * 1000, "ms")
        measure(page, server, figures, count)
        figures.add("resident memory of logtool", resident(server.process.pid), "MiB")
        figures.add("resident memory of the browser's renderer",
                    max(filter(None, map(resident, renderers(browser))), default=None), "MiB")
        browser.close()
        if page.found_faults:
            sys.exit(f"benchmark: the page had faults: {page.found_faults}")
    if options.json:
        options.json.write_text(json.dumps({"events": count, "bytes": size, "figures": figures.rows}, indent=2) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--events", type=int, default=1_000_000, help="the size of the log (default: 1000000)")
    parser.add_argument("--log", type=pathlib.Path, help="the folder of the log; made if it does not exist")
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures to a file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        log = options.log or pathlib.Path(temporary) / "log"
        if not log.exists():
            make_log(log, options.events)
        run(log, options)


main()
