#!/usr/bin/python3
"""Users with keys of their own at the page, in a headless Chromium, at an address that others reach this machine at: each sees
their own jobs and pictures, and what is for administrators is not shown to them.

  users_page_test.py PROGRAM GRAPHS [--screenshots FOLDER]

GRAPHS: the folder of the shipped workflows and their model. Needs Debian's chromium, chromium-driver and python3-selenium; where
one of these is missing it says so and passes.
"""

import argparse
import json
import pathlib
import shutil
import socket
import subprocess
import tempfile
import urllib.error
import urllib.request

import browser
from browser import says
from selenium.webdriver.common.keys import Keys

PACK = "document.body.append(Object.assign(document.createElement('p'), {id: 'of-pack', textContent: 'of a pack'}));"


def arguments():
    parser = argparse.ArgumentParser()
    for name in ("program", "graphs"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--screenshots", type=pathlib.Path)
    return parser.parse_args()


args = arguments()


def own_address():
    """One that others reach this machine at, where it has one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # of no machine; nothing is sent
            return probe.getsockname()[0]
        except OSError:
            return "127.0.0.1"


def key_of(user, keys, *options):
    made = subprocess.run([args.program, "key", "add", user, "--api-keys", keys, "--quiet", *options], check=True,
                          capture_output=True, text=True)
    return made.stdout.strip()


class Keyed:
    """Asks as whoever has the key does."""

    def __init__(self, server, key):
        self.url, self.key = server.url, key

    def ask(self, path, body=None):
        """(status, JSON)"""
        request = urllib.request.Request(self.url + path, None if body is None else json.dumps(body).encode(),
                                         {"Authorization": f"Bearer {self.key}"})
        try:
            with urllib.request.urlopen(request) as reply:
                text = reply.read()
                return reply.status, json.loads(text) if reply.headers["Content-Type"].startswith("application/json") else text
        except urllib.error.HTTPError as error:
            return error.code, None


class Page(browser.Browser):
    def text(self, selector):
        return self.js("return document.querySelector(arguments[0])?.textContent ?? ''", selector)

    def sign_in(self, key):
        self.find("#api-key").send_keys(key, Keys.ENTER)
        self.until("a connection", lambda: self.text("#connection") == "Connected")

    def is_shown(self, selector):
        return any(element.is_displayed() for element in self.all(selector))


def draw(page, graph):
    page.all("#file")[0].send_keys(str(graph))
    page.until("the workflow", lambda: page.is_shown("#queue-button"))
    page.click("#queue-button")
    page.until("the picture", lambda: page.js("return document.querySelector('#pictures img')?.naturalWidth > 0"))


def test(page, server, keys, graph):
    ann, bob, root = (Keyed(server, key) for key in keys)
    page.driver.get(server.url + "/heddle")
    page.sign_in(ann.key)
    says(page.text("#sign-out") == "Sign out ann", "the page says whose it is")
    draw(page, graph)
    says(not page.is_shown("#pause-queue"), "what is for administrators is not shown to users")
    page.until("the devices", lambda: page.all("#device-list .switch"))
    says(page.js("return document.querySelector('#device-list .switch').disabled"), "users drain no device")
    page.shot("ann")
    image = page.js("return document.querySelector('#pictures img').src")
    path = image[len(server.url):]
    says(ann.ask(path)[0] == 200 and root.ask(path)[0] == 200, "the picture is ann's, and administrators see it")
    says(bob.ask(path)[0] == 404, "it is not bob's")
    lines = [line for _, line in page.complaints() if "/v1/session" not in line]
    says(not lines, f"the browser has nothing to complain of {lines or ''}".rstrip())

    page.click("#sign-out")
    page.sign_in(bob.key)
    says(page.text("#sign-out") == "Sign out bob", "somebody else signs in at the same browser")
    says(not page.all("#pictures img"), "ann's pictures are not shown to bob")
    status, answer = bob.ask("/v1/jobs")
    says(status == 200 and not answer["jobs"], "nor are her jobs")
    page.shot("bob")

    page.click("#sign-out")
    page.sign_in(root.key)
    page.until("what ann has made", lambda: page.js("return document.querySelector('#pictures img')?.naturalWidth > 0"))
    says(page.is_shown("#pause-queue"), "an administrator sees all, and may do all")
    page.shot("root")

    # A page of the front end loads what packs bring, with the cookie alone.
    page.driver.get(server.url)
    page.until("what the pack adds", lambda: page.text("#of-pack") == "of a pack")
    says(True, "scripts of packs reach the front end")


def main():
    folder = pathlib.Path(tempfile.mkdtemp())
    server, page = None, None
    try:
        keys = [key_of("ann", folder / "keys"), key_of("bob", folder / "keys"), key_of("root", folder / "keys", "--admin")]
        (folder / "packs/theme/js").mkdir(parents=True)
        (folder / "packs/theme/__init__.py").write_text("WEB_DIRECTORY = './js'\n")
        (folder / "packs/theme/js/theme.js").write_text(PACK)
        (folder / "front_end").mkdir()
        (folder / "front_end/index.html").write_text(
            "<!DOCTYPE html><link rel=icon href=data:,><body><script type=module>"
            "for (const path of await (await fetch('api/extensions')).json()) await import('.' + path);</script>")
        flow = json.loads((args.graphs / "scene.json").read_text())
        for node in flow.values():
            if isinstance(node, dict) and "steps" in node.get("inputs", {}):
                node["inputs"]["steps"] = 4
        graph = folder / "scene.json"
        graph.write_text(json.dumps(flow))
        server = browser.Server(args.program, args.graphs, folder / "home", "--listen", own_address(), "--api-keys",
                                folder / "keys", "--front-end", folder / "front_end", "--packs", folder / "packs")
        page = Page("about:blank", args.screenshots)
        test(page, server, keys, graph)
        page.driver.quit()
        page = None
        says(server.stop() == 0, "the server ends")
        server = None
    finally:
        if page:
            print(page.complaints())
            page.driver.quit()
        if server:
            server.process.kill()
            print(server.log.read_text())
        shutil.rmtree(folder, ignore_errors=True)


main()
