"""What other pages, other machines and other users of this machine get: nothing. Issue 23, point 7."""

import contextlib
import http.server
import pathlib
import re
import socket
import threading

import pytest

import events
import screen
import studio

# What a browser loads before it has the key, and which has nothing of the log.
PAGES = ["/", "/studio.js", "/studio.css"]
PATHS = [*PAGES, "/api/log", "/api/events", "/api/histogram", "/api/views", "/api/outbox",
         "/api/files", "/api/verify", "/api/export?format=ndjson", "/api/nothing", "/nothing"]
DECISIONS = ["/api/outbox/retry", "/api/outbox/discard", "/api/outbox/resolve"]


class Attacker:
    """A site of its own on this machine. `pages` are the HTML texts by path."""

    def __init__(self, pages):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.end_headers()
                self.wfile.write(pages.get(self.path, "").encode())

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, args=[0.02], daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


# Without a browser


@pytest.mark.parametrize("path", [path for path in PATHS if path not in PAGES])
def test_a_request_without_the_token_is_refused(field, path):
    reply = field.request(path, key=False)
    assert (reply.status, reply.code) == (401, "noToken")


@pytest.mark.parametrize("path", DECISIONS)
def test_a_decision_without_the_token_is_refused(field, path):
    reply = field.request(path, "POST", body={"id": events.identifier("rejected")}, key=False)
    assert (reply.status, reply.code) == (401, "noToken")


@pytest.mark.parametrize("token", ["", "0", "0" * 32, "%C3%A9", "%00"])
def test_a_wrong_token_is_refused(field, token):
    assert field.request(f"/api/log?token={token}", key=False).status == 401
    assert field.request("/api/log", headers={"Authorization": f"Bearer {token}"}).status == 401


def test_the_token_is_random_and_long(field, serve, field_log):
    other = serve(field_log)
    assert len(bytes.fromhex(field.token)) >= 16
    assert field.token != other.token
    assert other.request("/api/log", headers={"Authorization": f"Bearer {field.token}"}).status == 401


def test_there_is_no_cookie(field):
    for path in [*PATHS, f"/?token={field.token}"]:
        assert "set-cookie" not in field.request(path).headers
    cookie = {"Cookie": f"daybook-studio-{field.port}={field.token}"}
    assert field.request("/api/log", headers=cookie, key=False).status == 401


@pytest.mark.parametrize("host", [
    "rebound.example", "rebound.example:{port}", "localhost:{port}", "127.0.0.1", "127.0.0.1:1", "127.0.0.2:{port}",
    "[::1]:{port}", "127.0.0.1:{port}.rebound.example", "", "0.0.0.0:{port}"])
def test_a_request_under_another_name_is_refused(field, host):
    for path in ["/", f"/?token={field.token}", "/studio.js", "/api/log"]:
        reply = field.request(path, headers={"Host": host.format(port=field.port)})
        assert (reply.status, reply.code) == (421, "wrongHost"), path


@pytest.mark.parametrize("site", ["cross-site", "same-site", "nonsense"])
def test_a_request_that_another_site_has_caused_is_refused(field, site):
    for path in PATHS[1:]:
        reply = field.request(path, headers={"Sec-Fetch-Site": site})
        assert (reply.status, reply.code) == (403, "crossSite"), path


@pytest.mark.parametrize("origin", [None, "null", "http://rebound.example", "http://127.0.0.1:1",
                                    "https://127.0.0.1:{port}", "http://localhost:{port}"])
def test_a_decision_that_another_site_has_caused_is_refused(serve, field_log, origin):
    server = serve(field_log, "--write")
    origin = origin and origin.format(port=server.port)
    for path in DECISIONS:
        reply = server.request(path, "POST", {"Origin": origin}, {"id": events.identifier("rejected")})
        assert (reply.status, reply.code) == (403, "crossSite"), path


@pytest.mark.parametrize("path", DECISIONS)
def test_without_write_nothing_can_be_decided(field, path):
    before = field.api("outbox")
    reply = field.request(path, "POST", body={"id": events.identifier("rejected"), "keep": "mine"})
    assert (reply.status, reply.code) == (403, "readOnly")
    assert field.api("outbox") == before


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
def test_other_methods_are_refused(field, method):
    reply = field.request("/api/log", method)
    assert reply.status in (403, 405)
    assert "access-control-allow-origin" not in reply.headers


def test_every_answer_has_the_headers_that_protect_it(field):
    for path in PATHS:
        for key in [True, False]:
            headers = field.request(path, key=key).headers
            policy = [part.strip() for part in headers["content-security-policy"].split(";")]
            assert "default-src 'self'" in policy
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in headers["content-security-policy"]
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["cross-origin-resource-policy"] == "same-origin"
            assert headers["referrer-policy"] == "no-referrer"
            assert headers["cache-control"] == "no-store"
            assert not [name for name in headers if name.startswith("access-control-")]


def test_the_page_has_no_script_and_no_style_of_its_own_text(field):
    html = field.request("/").body.decode().lower()
    assert "<style" not in html and "style=" not in html
    assert html.count("<script") == html.count('<script type="module" src="')
    assert "http://" not in html and "https://" not in html


@pytest.mark.parametrize("path", [
    "/../../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/api/files/..%2f..%2fetc%2fpasswd",
    "/api/files/%2fetc%2fpasswd", "/api/files/lock", "/api/files/00000000000000000001.lz4%00", "/studio.js%00.html"])
def test_no_path_leads_out_of_the_log(field, path):
    reply = field.request(path)
    assert reply.status in (400, 404)
    assert b"root:" not in reply.body


@pytest.mark.parametrize("query", [
    "events?offset=-1", "events?offset=99999999999999999999", "events?limit=0", "events?limit=1001", "events?from=x",
    "events?since=yesterday", "events?order=sideways", "histogram?buckets=0", "histogram?buckets=1000000000",
    "events/0", "events/-1", "events/99999999999999999999", "events/x", "find?id=x", "find", "rank", "views/nothing",
    "views/notes?at=x", "views/notes/step?at=1&to=up", "views/notes/changes?from=5", "export?format=exe",
    "outbox/dependents", "outbox/dependents?id=x"])
def test_a_nonsensical_request_is_refused_with_a_sentence(field, query):
    reply = field.request(f"/api/{query}")
    assert reply.status in (400, 404, 422), reply.body
    assert " " in reply.json()["error"]["message"]


def test_a_large_or_broken_body_is_refused(serve, field_log):
    server = serve(field_log, "--write")
    for body in [{"id": "x" * 100_000}, {"id": 5}, {}, [], "id", {"id": "x"}]:
        assert server.request("/api/outbox/retry", "POST", body=body).status in (400, 413), body
    screen.wait_until(lambda: server.api("log")["complete"], "the log is read")
    assert server.api("log")["events"] == 258


def test_only_the_loopback_address_is_bound(field):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing: finds this machine's own address
            addresses = [probe.getsockname()[0]]
        except OSError:
            addresses = []
    for address in [*addresses, "127.0.0.2", "::1"]:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.socket(family) as connection:
            connection.settimeout(5)
            with pytest.raises(OSError):
                connection.connect((address, field.port))


@pytest.mark.skipif(not pathlib.Path("/proc/self/status").exists(), reason="the system does not tell the memory of a process")
@pytest.mark.parametrize("filler", [
    pytest.param(lambda number: "a" * 65_536, id="one line"),
    pytest.param(lambda number: f"X-Filler-{number}: {'a' * 65_536}\r\n", id="many headers"),
])
def test_a_request_head_without_end_takes_little_memory(serve, field_log, filler):
    server = serve(field_log)

    def resident():
        status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024

    before = resident()
    with socket.create_connection(("127.0.0.1", server.port), timeout=2) as connection:
        connection.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n".encode())
        with contextlib.suppress(OSError):  # not read any more, or closed
            for number in range(512):
                connection.sendall(filler(number).encode())
        assert resident() - before < 16 * 1024 * 1024


# In the same browser


def test_the_token_is_not_in_the_address_after_the_first_request(page, field):
    screen.show(page, field)
    assert page.evaluate("() => location.search") == ""
    assert field.token not in page.url
    assert page.context.cookies() == []


def test_a_page_that_is_loaded_again_and_a_tab_beside_it_have_the_key(page, field):
    screen.show(page, field)
    page.reload()
    screen.wait_until_shown(page, "timeline")
    other = screen.watched(page.context.new_page())
    other.goto(f"{field.origin}/#timeline")
    screen.wait_until_shown(other, "timeline")
    assert screen.faults(other) == []


def test_the_key_goes_to_no_other_port(page, field):
    screen.show(page, field)
    got = []

    class Listener(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            got.append(str(self.headers))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Listener) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        with contextlib.suppress(Exception):  # a page without content
            page.goto(f"http://127.0.0.1:{server.server_port}/")
    [headers] = got
    assert field.token not in headers


def test_four_large_posts_without_the_token_stop_nothing(serve, field_log):
    server = serve(field_log, "--write")
    head = f"POST /api/outbox/retry HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Length: 41943040\r\n\r\n"

    def post():
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
            connection.sendall(head.encode())
            for _ in range(640):
                connection.sendall(b"x" * 65_536)

    threads = [threading.Thread(target=post) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert server.api("log")["writable"]
    for thread in threads:
        thread.join()
    assert server.api("log")["writable"]


ATTACK = """<!DOCTYPE html><title>attack</title><body><script>
const got = [];
const target = '%(origin)s';
const paths = %(paths)s;
async function attempt(name, action) {
  try { got.push([name, await action()]); } catch (error) { got.push([name, null]); }
}
function load(element, name, value) {
  return new Promise((resolve) => {
    element.addEventListener('load', () => resolve('loaded'));
    element.addEventListener('error', () => resolve(null));
    element[name] = value;
    document.body.append(element);
  });
}
(async () => {
  for (const path of paths) {
    await attempt(`fetch ${path}`, async () => (await fetch(target + path, { credentials: 'include' })).text());
    await attempt(`fetch without cors ${path}`, async () => (await (await fetch(target + path,
      { credentials: 'include', mode: 'no-cors' })).text()) || null);
    await attempt(`script ${path}`, () => load(document.createElement('script'), 'src', target + path));
    await attempt(`image ${path}`, () => load(document.createElement('img'), 'src', target + path));
    const style = document.createElement('link');
    style.rel = 'stylesheet';
    await attempt(`style ${path}`, () => load(style, 'href', target + path));
  }
  for (const path of %(decisions)s) {
    await attempt(`post ${path}`, async () => (await fetch(target + path, { method: 'POST', credentials: 'include',
      headers: { 'content-type': 'application/json' }, body: %(body)s })).text());
    await attempt(`simple post ${path}`, async () => (await (await fetch(target + path, { method: 'POST',
      credentials: 'include', mode: 'no-cors', headers: { 'content-type': 'text/plain' }, body: %(body)s })).text()) || null);
  }
  const frame = document.createElement('iframe');
  frame.src = target + '/';
  document.body.append(frame);
  await new Promise((resolve) => frame.addEventListener('load', resolve));
  await attempt('frame', () => frame.contentDocument.body.textContent);
  const opened = open(target + '/');
  // Until the page is loaded the window is empty, and this page may read it.
  await attempt('window', async () => {
    while (opened !== null && !opened.closed && opened.document.URL === 'about:blank') {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    return opened === null || opened.closed ? null : opened.document.body.textContent;
  });
  window.got = got;
})();
</script>"""

FORM = """<!DOCTYPE html><title>form</title><form method="post" enctype="text/plain" action="%(action)s">
<input name='{"id":"%(id)s","x":"' value='"}'></form><script>document.forms[0].submit()</script>"""


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "rebound.example"])
def test_a_page_of_another_origin_gets_nothing(page, serve, field_log, host):
    server = serve(field_log, "--write")
    screen.show(page, server)  # the browser has the key now
    screen.wait_until(lambda: server.api("outbox")["complete"], "the outbox is read")
    before = server.api("outbox")
    identifier = events.identifier("rejected")
    values = {"origin": server.origin, "paths": [path for path in PATHS if path != "/"], "decisions": DECISIONS,
              "body": repr(f'{{"id":"{identifier}","keep":"mine"}}')}
    page.allowed_faults += ["Failed to load resource", "blocked by CORS policy", "Refused to", "frame", "MIME type",
                            "ERR_", "Cross-Origin"]
    with Attacker({"/": ATTACK % values}) as attacker:
        page.goto(f"http://{host}:{attacker.port}/")
        page.wait_for_function("() => window.got !== undefined")
        got = page.evaluate("() => window.got")
    assert [attempt for attempt in got if attempt[1] is not None] == []
    assert len(got) > 60
    assert server.api("outbox") == before


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "rebound.example"])
def test_a_form_of_another_origin_decides_nothing(page, serve, field_log, host):
    server = serve(field_log, "--write")
    screen.show(page, server)
    screen.wait_until(lambda: server.api("outbox")["complete"], "the outbox is read")
    before = server.api("outbox")
    page.allowed_faults += ["Failed to load resource"]
    values = {"action": f"{server.origin}/api/outbox/retry", "id": events.identifier("rejected")}
    with Attacker({"/": FORM % values}) as attacker:
        with page.expect_response(lambda response: response.url == values["action"]) as answered:
            page.goto(f"http://{host}:{attacker.port}/", wait_until="commit")
    assert answered.value.status in (401, 403)
    assert server.api("outbox") == before


def test_a_name_that_was_rebound_to_this_machine_gets_nothing(page, field):
    screen.show(page, field)
    page.allowed_faults += ["Failed to load resource", "Cross-Origin-Opener-Policy header has been ignored"]
    for path in ["/", f"/?token={field.token}", "/api/log", "/studio.js"]:
        answer = page.goto(f"http://rebound.example:{field.port}{path}")
        assert answer.status == 421
        assert "events" not in answer.text()


def test_a_screen_asks_no_other_server(page, field):
    screen.show(page, field)
    for tab in screen.TABS:
        screen.go(page, tab)
    assert [url for url in page.sent_requests if not url.startswith(field.origin + "/")] == []
