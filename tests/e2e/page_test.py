#!/usr/bin/python3
"""The page of our own over `heddle serve`, in a headless Chromium: what a person does with it.

  page_test.py PROGRAM GRAPHS [--screenshots FOLDER]

GRAPHS: the folder of the shipped workflows and their model. Needs Debian's chromium, chromium-driver and python3-selenium; where
one of these is missing it says so and passes.
"""

import argparse
import base64
import contextlib
import json
import pathlib
import shutil
import socket
import tempfile
import urllib.error

import browser
from browser import By, says
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

TITLE = "a red house <img src=none>"  # text, whatever stands in it
GONE = "/preview?number="  # of a job that has ended meanwhile
KEY = "a key of this test"
WIDE, PHONE = (1440, 900), (360, 740)
# Roles of what a person operates: each has to have a name; and so do these others.
OPERATED = {"button", "link", "textbox", "combobox", "checkbox", "switch", "spinbutton", "listbox", "slider", "searchbox"}
NAMED = {"progressbar", "progressIndicator", "img", "image", "region", "navigation", "form", "dialog", "group"}


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


class Server(browser.Server):
    def __init__(self, folder, *options, **environment):
        super().__init__(args.program, args.graphs, folder, *options, **environment)

    def waiting(self):
        return [job["id"] for job in self.get("/v1/queue")["waiting"]]

    def ended(self, state):
        return self.get(f"/v1/jobs?state={state}")["jobs"]


class Page(browser.Browser):
    def fill(self, selector, text):
        field = self.find(selector)
        self.js("arguments[0].scrollIntoView({block: 'center'})", field)
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(str(text))

    def text(self, selector):
        return self.js("return document.querySelector(arguments[0])?.textContent ?? ''", selector)

    def ids(self, selector):
        return self.js("return [...document.querySelectorAll(arguments[0])].map((element) => element.dataset.id)", selector)

    def show(self, size=WIDE, scheme="light"):
        width, height = size
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == PHONE})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def nameless(self):
        """What assistive technology sees without a name."""
        nodes = self.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        seen = [(node["role"]["value"], node.get("name", {}).get("value", "").strip())
                for node in nodes if not node.get("ignored") and "role" in node]
        operated = [role for role, name in seen if role in OPERATED]
        assert len(operated) > 1, f"the tree has only {operated}"
        return [role for role, name in seen if role in OPERATED | NAMED and not name]


def all_named(page, what):
    says(not (roles := page.nameless()), f"{what} {roles or ''}".rstrip())


def small_scene(folder):
    flow = json.loads((args.graphs / "scene.json").read_text())
    flow["4"]["inputs"].update(width=128, height=128)
    flow["5"]["inputs"].update(steps=16, seed=2**64 - 1)  # more than a number of a page holds
    path = folder / "small.json"
    path.write_text(json.dumps(flow))
    return path


def draw(page, server, folder):
    page.find("#drop-hint")
    page.until("a connection", lambda: page.text("#connection") == "Connected")
    all_named(page, "each control of the empty page has a name")
    page.shot("empty")
    page.all("#file")[0].send_keys(str(small_scene(folder)))
    page.fill("textarea", TITLE)
    steps = "[id='field-5-steps']"
    page.fill(steps, "many")
    page.click("#queue-button")
    page.until("a complaint", lambda: page.text("[id='field-5-steps-fault']") == "A whole number from 1 to 10000")
    says(page.js("return document.activeElement.id") == "field-5-steps" and page.find("#problem").text and not server.waiting(),
         "what is no number is not queued")
    page.fill(steps, 20)
    page.click("#queue-button")
    page.until("a tile", lambda: page.ids("#tiles > li"))
    page.until("progress and its preview", lambda: page.js("""
        const tile = document.querySelector('#tiles > li');
        const share = tile?.querySelector('progress').value, picture = tile?.querySelector('img');
        return share > 0 && share < 1 && picture.naturalWidth > 0 && !picture.hidden && tile.textContent.includes('of 20')
            && tile.textContent.includes('cpu:0');"""))
    page.shot("running")
    size = page.until("the picture", lambda: page.js("""
        const picture = document.querySelector('#result-picture img');
        return document.querySelector('#result').dataset.state === 'done' && picture?.src.includes('/view?') && picture.naturalWidth
            ? [picture.naturalWidth, picture.naturalHeight] : null;"""))
    says(size == [128, 128], "a changed workflow is drawn, with progress, preview and picture")
    [job] = server.ended("done")
    inputs = server.get(f"/v1/jobs/{job['id']}")["workflow"]["prompt"]
    says(inputs["2"]["inputs"]["text"] == TITLE and inputs["5"]["inputs"]["steps"] == 20,
         "the server ran what was typed")
    says(inputs["5"]["inputs"]["seed"] == 2**64 - 1, "a seed of 64 bits stays whole")
    page.until("the job's title", lambda: page.text("#ended .title") == TITLE)
    says(not page.all("img[src=none]"), "what a job says stays text")


def refuse(page, server, folder):
    """What the server does not take is told at its field."""
    flow = json.loads((folder / "small.json").read_text())
    flow["1"]["inputs"]["model_path"] = "lost"
    (folder / "lost.json").write_text(json.dumps(flow))
    page.all("#file")[0].send_keys(str(folder / "lost.json"))
    page.until("the other workflow", lambda: page.text("#workflow-name") == "lost.json")
    page.click("#queue-button")
    page.until("the fault", lambda: page.text("[id='field-1-model_path-fault']") and "marked" in page.text("#problem"))
    says(not server.waiting() and len(server.ended("done")) == 1, "what the server refuses is told at its field")
    [(_, line)] = page.complaints()
    says("/v1/jobs" in line and "422" in line, "the browser complains of that alone")


def drop(page, folder):
    """The picture brings its workflow."""
    page.fill("textarea", "something else")
    [picture] = (folder / "open/output").glob("*.png")
    page.js("""const bytes = Uint8Array.from(atob(arguments[0]), (c) => c.charCodeAt(0));
        const dataTransfer = new DataTransfer();
        dataTransfer.items.add(new File([bytes], 'dropped.png', {type: 'image/png'}));
        for (const type of ['dragenter', 'dragover', 'drop'])
          document.body.dispatchEvent(new DragEvent(type, {dataTransfer, bubbles: true, cancelable: true}));""",
            base64.b64encode(picture.read_bytes()).decode())
    page.until("the dropped workflow", lambda: page.text("#workflow-name") == "dropped.png")
    says(page.find("textarea").get_attribute("value") == TITLE and page.find("[id='field-5-seed']").get_attribute("value") ==
         str(2**64 - 1), "a dropped picture brings its workflow")


def drag(page, ids, first, last):
    places = [page.find(f"#waiting > li[data-id='{ids[at]}'] .drag") for at in (first, last)]
    page.js("arguments[0].scrollIntoView({block: 'center'})", places[0])
    way = places[1].rect["y"] - places[0].rect["y"]
    chain = ActionChains(page.driver, duration=50).click_and_hold(places[0])
    chain.move_by_offset(0, int(way * 0.6)).move_by_offset(0, int(way * 0.5)).release().perform()


def reorder(page, server):
    page.click("#pause-queue")
    page.until("a paused queue", lambda: server.get("/v1/queue")["is_paused"])
    page.click(".dice input")
    page.fill("#copies", 3)
    page.click("#queue-button")
    first = page.until("three jobs that wait", lambda: len(page.ids("#waiting > li")) == 3 and page.ids("#waiting > li"))
    says(server.waiting() == first, "three are queued, in the server's order")
    page.find("#queue-paused")

    def is_order(order):
        page.until(f"the order {order}", lambda: server.waiting() == order and page.ids("#waiting > li") == order)
    page.click(f"#waiting > li[data-id='{first[2]}'] [title^='Move up']")
    is_order([first[0], first[2], first[1]])
    says(page.js("return document.activeElement.title.startsWith('Move up')"), "a button moves a job, and keeps the focus")
    page.find(f"#waiting > li[data-id='{first[0]}'] .drag").send_keys(Keys.ARROW_DOWN)
    is_order([first[2], first[0], first[1]])
    drag(page, server.waiting(), 0, 2)
    is_order([first[0], first[1], first[2]])
    drag(page, server.waiting(), 2, 1)
    is_order([first[0], first[2], first[1]])
    says(True, "jobs are moved by keys and by dragging")
    page.click(f"#waiting > li[data-id='{first[0]}'] [title^='Pause']")
    page.until("a paused job", lambda: server.get(f"/v1/jobs/{first[0]}")["state"] == "paused")
    page.find(f"#waiting > li[data-id='{first[0]}'] [title^='Resume']")
    page.click(f"#waiting > li[data-id='{first[2]}'] [title^='Cancel']")
    is_order([first[0], first[1]])
    all_named(page, "each control of the full page has a name")
    page.shot("queue")
    page.show(PHONE)
    page.js("document.querySelector('#queue').scrollIntoView()")
    page.shot("queue_phone")
    page.show()
    page.driver.refresh()
    page.until("the queue after a reload", lambda: page.ids("#waiting > li") == [first[0], first[1]])
    says(page.find("textarea").get_attribute("value") == TITLE and page.text("#pause-queue") == "Resume",
         "one is cancelled, and a reload loses nothing")
    page.click(f"#waiting > li[data-id='{first[0]}'] [title^='Resume']")
    page.until("a job that waits", lambda: server.get(f"/v1/jobs/{first[0]}")["state"] == "pending")


def drain(page, server):
    def service():
        return server.get("/v1/devices")["devices"][0]["service"]
    page.click("#device-list [role=switch]")
    page.until("a drained device", lambda: service() in ("draining", "drained"))
    page.until("its switch", lambda: page.all("#device-list [role=switch][aria-checked=false]"))
    says(page.js("return document.querySelector('.memory').getAttribute('aria-label')").startswith("Memory of cpu:0: ours "),
         "a device is drained, and its memory is told")
    page.click("#device-list [role=switch]")
    page.until("an enabled device", lambda: service() == "enabled")


def finish(page, server):
    page.click("#pause-queue")
    page.until("all jobs", lambda: len(server.ended("done")) == 3)
    page.until("their pictures", lambda: page.js("""
        const pictures = [...document.querySelectorAll('#pictures img')];
        return pictures.length === 3 && pictures.every((picture) => picture.complete && picture.naturalWidth > 0);"""))
    page.click("#pictures > li:last-child button")
    page.until("the viewer", lambda: page.js("return document.querySelector('#viewer-picture img')?.naturalWidth > 0"))
    all_named(page, "each control of the viewer has a name")
    page.shot("viewer")
    title = page.text("#viewer-title")
    page.driver.switch_to.active_element.send_keys(Keys.ARROW_LEFT)
    page.until("the next picture", lambda: page.text("#viewer-title") not in ("", title))
    page.click("#viewer-use")
    says(page.text("#workflow-name").endswith(".png"), "pictures are in the gallery, and give their workflow back")


def cancel_and_retry(page, server):
    page.fill("[id='field-5-steps']", 2000)
    page.fill("#copies", 1)
    page.click("#queue-button")
    [running] = page.until("a tile", lambda: page.ids("#tiles > li"))
    page.click("#tiles [title^='Pause']")
    page.until("a paused run", lambda: server.get(f"/v1/jobs/{running}")["progress"]["state"] == "paused")
    page.click("#tiles [title^='Resume']")
    page.click("#tiles [title^='Cancel']")
    page.until("the cancelled job", lambda: page.all(f"#ended > li.cancelled[data-id='{running}']"))
    says(not page.all("#tiles > li"), "one that runs is paused, goes on, and is cancelled")
    page.click(f"#ended > li[data-id='{running}'] [title^='Run again']")
    [again] = page.until("it again", lambda: page.ids("#tiles > li"))
    says(server.get(f"/v1/jobs/{again}")["retry_of"] == running, "it is tried again")
    says(not server.get(f"/v1/jobs/{again}")["from_start"], "with what is kept")
    page.click("#ended > li.done [title^='Run all of it again']")
    anew = page.until("a job from its start", lambda: [job["id"] for job in server.get("/v1/jobs")["jobs"] if job["from_start"]])
    with contextlib.suppress(urllib.error.HTTPError):  # it has ended already
        server.get(f"/v1/jobs/{anew[0]}/cancel", {})
    page.until("the other one's end", lambda: page.ids("#tiles > li") == [again])
    page.until("its preview", lambda: page.js("return document.querySelector('#tiles img')?.naturalWidth > 0"))


def watch_others(page, server):
    """Of another client's job there are no messages: the page asks how far it is."""
    [mine] = page.ids("#tiles > li")
    flow = server.get(f"/v1/jobs/{mine}")["workflow"]["prompt"]
    page.click("#tiles [title^='Cancel']")
    page.until("the end of its own one", lambda: not page.ids("#tiles > li"))
    flow["5"]["inputs"].update(seed=7, steps=1000)
    [job] = server.get("/v1/jobs", {"workflow": flow, "client": "another"})["jobs"]
    page.until("its progress and preview", lambda: page.js("""
        const tile = document.querySelector('#tiles > li');
        return tile?.dataset.id === arguments[0] && tile.querySelector('progress').value > 0 && tile.textContent.includes('%')
            && tile.querySelector('img').naturalWidth > 0;""",
                                                   job["id"]))
    says(True, "what others run is shown, too")
    server.get(f"/v1/jobs/{job['id']}/cancel", {})
    page.until("its end", lambda: not page.ids("#tiles > li"))


def looks(page):
    page.js("scrollTo(0, 0)")
    for size, scheme in ((WIDE, "light"), (WIDE, "dark"), ((900, 900), "light"), (PHONE, "light"), (PHONE, "dark")):
        page.show(size, scheme)
        width = page.until("no line that is too wide", lambda: page.js("return document.documentElement.scrollWidth"))
        assert width <= size[0], f"{width} pixels are wide at {size[0]}"
        page.shot(f"{size[0]}_{scheme}")
    for part in ("running", "queue", "gallery", "devices"):
        page.click(f"#tabs a[href='#{part}']")
        top = page.js("return document.getElementById(arguments[0]).getBoundingClientRect().top", part)
        assert top < PHONE[1], f"#{part} is at {top}"
        page.shot(f"phone_{part}")
    all_named(page, "it fits on a phone, light and dark")
    page.show()


def sign_in(page, server, picture):
    page.driver.get(server.url)
    page.fill("#api-key", "wrong")
    page.find("#api-key").send_keys(Keys.ENTER)
    page.until("a refusal", lambda: page.text("#sign-in-problem") == "This is not the key.")
    all_named(page, "a wrong key lets nobody in")
    page.shot("sign_in")
    page.fill("#api-key", KEY)
    page.find("#api-key").send_keys(Keys.ENTER)
    page.until("the front end", lambda: page.text("body") == "front end")
    page.driver.get(f"{server.url}/heddle")
    page.until("a connection", lambda: page.text("#connection") == "Connected")
    cookie = page.driver.get_cookie("heddle_session")
    says(cookie["httpOnly"] and cookie["sameSite"] == "Strict" and KEY not in cookie["value"], "the key lets a person in")
    page.driver.refresh()
    page.until("a connection after a reload", lambda: page.text("#connection") == "Connected")
    page.all("#file")[0].send_keys(str(picture))
    page.click("#queue-button")
    page.until("the picture", lambda: page.js("return document.querySelector('#pictures img')?.naturalWidth > 0"))
    says(True, "with it everything works")
    page.click("#sign-out")
    page.find("#api-key")
    says(page.driver.get_cookie("heddle_session") is None, "whoever signs out has to sign in again")
    lines = [line for _, line in page.complaints() if "/v1/session" not in line or "401" not in line]
    says(not lines, f"signing in is all that the browser complains of {lines or ''}".rstrip())


def main():
    folder = pathlib.Path(tempfile.mkdtemp())
    servers, page = [], None
    try:
        servers.append(Server(folder / "open"))
        page = Page(servers[0].url, args.screenshots)
        page.show()
        draw(page, servers[0], folder)
        refuse(page, servers[0], folder)
        drop(page, folder)
        reorder(page, servers[0])
        drain(page, servers[0])
        finish(page, servers[0])
        cancel_and_retry(page, servers[0])
        looks(page)
        watch_others(page, servers[0])
        lines = [line for _, line in page.complaints() if GONE not in line]
        says(not lines, f"the browser has nothing to complain of {lines or ''}".rstrip())
        picture = sorted((folder / "open/output").glob("*.png"))[0]
        (folder / "front_end").mkdir()
        (folder / "front_end/index.html").write_text("<!DOCTYPE html><link rel=icon href=data:,><body>front end</body>")
        servers.append(Server(folder / "key", "--listen", own_address(), "--front-end", folder / "front_end", HEDDLE_API_KEY=KEY))
        sign_in(page, servers[1], picture)
        page.driver.quit()
        page = None
        says([server.stop() for server in servers] == [0, 0], "the servers end")
        servers = []
    finally:
        if page:
            print(page.complaints())
            page.driver.quit()
        for server in servers:
            server.process.kill()
            print(server.log.read_text())
        shutil.rmtree(folder, ignore_errors=True)


main()
