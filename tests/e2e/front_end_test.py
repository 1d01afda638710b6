#!/usr/bin/python3
"""ComfyUI's front end, unmodified, over `heddle serve`, in a headless Chromium: what a person does with it.

  front_end_test.py PROGRAM GRAPHS FRONT_END [--screenshots FOLDER]

GRAPHS: the folder of the shipped workflows and their model. FRONT_END: a folder with the PyPI package
comfyui-frontend-package 1.58.1. Needs Debian's chromium, chromium-driver and python3-selenium; where one of these is missing it
says so and passes.
"""

import argparse
import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

SECONDS = 180  # until what is waited for has to be there; other tests run beside this one
LISTENED_TO = ["execution_start", "progress", "executed", "b_preview", "execution_success", "execution_error",
               "execution_interrupted"]
# What the front end asks for although it need not be there, and what it asks of other sites.
MAY_BE_MISSING = ["/user.css", "/api/userdata", "/templates/index_logo.json", "https://"]


def skip(why):
    print(f"skipped: the browser test of ComfyUI's front end: {why}")
    sys.exit(0)


def arguments():
    parser = argparse.ArgumentParser()
    for name in ("program", "graphs", "front_end"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--screenshots", type=pathlib.Path)
    return parser.parse_args()


args = arguments()
try:
    from selenium import webdriver
    from selenium.common.exceptions import WebDriverException
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
except ImportError:
    skip("python3-selenium is not installed")
for tool in ("chromium", "chromedriver"):
    if shutil.which(tool) is None:
        skip(f"{tool} is not installed")
if not (args.front_end / "comfyui_frontend_package/static/index.html").exists():
    skip("comfyui-frontend-package is not installed")


def by_test_id(name):
    return By.CSS_SELECTOR, f"[data-testid={name}]"


def by_label(name):
    return By.CSS_SELECTOR, f"[aria-label='{name}']"


def template_package(folder):
    """Packages as pip installs them: the front end, and one of templates with a workflow that the small model draws."""
    templates = folder / "comfyui_workflow_templates_small/templates"
    templates.mkdir(parents=True)
    (folder / "comfyui_frontend_package").symlink_to((args.front_end / "comfyui_frontend_package").resolve())
    flow = json.loads((args.graphs / "saved_form.json").read_text())
    for node in flow["nodes"]:
        if node["type"] == "KSampler":
            node["widgets_values"][2] = 6  # steps
    (templates / "small.json").write_text(json.dumps(flow))
    shutil.copy(args.graphs / "gallery/saved_form.png", templates / "small-1.png")
    (templates / "index.json").write_text(json.dumps([{
        "moduleName": "default", "title": "Small", "type": "image", "templates": [{
            "name": "small", "title": "A small scene", "mediaType": "image", "mediaSubtype": "png",
            "description": "Drawn by the model that ships."}]}]))
    return folder


class Server:
    def __init__(self, folder):
        environment = dict(os.environ, HOME=str(folder), HEDDLE_PLUGINS="")
        for name in ("CONFIG", "CACHE", "STATE"):
            environment[f"XDG_{name}_HOME"] = str(folder / name.lower())
        self.log = folder / "log"
        command = [args.program, "serve", "--port", "0", "--json", "--devices", "cpu", "--output", folder / "output",
                   "--input", folder / "input", "--models", args.graphs / "models",
                   "--front-end", template_package(folder / "pip")]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log.open("w"), env=environment, text=True)
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"no address: {self.log.read_text()}")
        self.url = json.loads(line)["url"]

    def get(self, path):
        with urllib.request.urlopen(self.url + path) as reply:
            return json.load(reply)

    def ended(self, status="success"):
        return [job for job in self.get("/history").values() if job["status"]["status_str"] == status]

    def stop(self):
        self.process.terminate()
        return self.process.wait(timeout=SECONDS)


class Page:
    def __init__(self, url):
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1600,1000"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        try:
            self.driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
        except WebDriverException as error:  # no fault of what is tested
            skip(f"chromium does not start here: {error.msg}".replace("\n", " "))
        self.driver.set_script_timeout(SECONDS)
        self.shots = 0
        self.driver.get(url)

    def js(self, code, *values):
        return self.driver.execute_script(code, *values)

    def until(self, what, condition):
        """What `condition` gives as soon as it is something; elements may vanish while they are looked at."""
        error, end = None, time.monotonic() + SECONDS
        while time.monotonic() < end:
            try:
                if found := condition():
                    return found
            except Exception as problem:  # of the driver: asked again
                error = problem
            time.sleep(0.1)
        self.shot("failed")
        raise AssertionError(f"{what}: not within {SECONDS} s ({error})")

    def find(self, by, what=""):
        def shown():
            return next((e for e in self.driver.find_elements(*by) if e.is_displayed()), None)
        return self.until(what or f"{by[1]} is shown", shown)

    def click(self, by):
        def clicked():
            self.find(by).click()
            return True
        self.until(f"{by[1]} can be clicked", clicked)

    def opened(self):
        self.until("the canvas", lambda: self.js("return !!(window.app && app.canvas && app.graph)"))
        self.js("""window.seen = [];
            for (const type of arguments[0]) app.api.addEventListener(type, () => seen.push(type));""", LISTENED_TO)

    def seen(self, *types):
        return all(type in self.js("return seen") for type in types)

    def nodes(self):
        return self.js("return app.graph._nodes.map(node => node.type)")

    def widget(self, node, name):
        return self.js("""const node = app.graph._nodes.find(node => node.title === arguments[0]);
            return node && node.widgets.find(widget => widget.name === arguments[1]).value;""", node, name)

    def set_widget(self, node, name, value):
        self.js("""const node = app.graph._nodes.find(node => node.title === arguments[0]);
            const widget = node.widgets.find(widget => widget.name === arguments[1]);
            widget.value = arguments[2]; widget.callback?.(arguments[2]);""", node, name, value)

    def shot(self, name):
        if args.screenshots:
            args.screenshots.mkdir(parents=True, exist_ok=True)
            self.shots += 1
            self.driver.save_screenshot(str(args.screenshots / f"{self.shots:02}_{name}.png"))

    def complaints(self):
        """What the browser could not load, and what failed in the page."""
        lines = [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]
        return [line for line in lines if not any(part in line for part in MAY_BE_MISSING)]


def says(condition, what):
    if not condition:
        raise AssertionError(what)
    print(what, flush=True)


def draw_a_template(page, server):
    page.opened()
    page.find(by_test_id("template-workflow-small"), "the dialog of templates at the first visit")
    page.shot("templates")
    page.click(by_test_id("template-workflow-small"))
    page.until("the template's nodes", lambda: "KSampler" in page.nodes())
    says(page.widget("prompt", "text").startswith("an orange mushroom"), "a template is loaded")
    says(not page.js("return app.graph._nodes.some(node => node.has_errors)"), "all its nodes are known")
    prompt = page.until("the prompt's text", lambda: next(
        e for e in page.driver.find_elements(By.TAG_NAME, "textarea") if e.get_attribute("value").startswith("an orange")))
    prompt.click()
    prompt.send_keys(Keys.CONTROL, "a")
    prompt.send_keys("a red house on the left")
    page.click(by_test_id("queue-button"))
    page.until("progress in the title", lambda: "%]" in page.driver.title and "KSampler" in page.driver.title)
    page.until("a preview", lambda: page.seen("progress", "b_preview"))
    page.until("the end", lambda: page.seen("execution_start", "executed", "execution_success"))
    image = page.until("the picture at its node", lambda: page.js("""
        const node = app.graph._nodes.find(node => node.type === 'SaveImage');
        return node.imgs && node.imgs[0].naturalWidth ? [node.imgs[0].naturalWidth, node.imgs[0].naturalHeight] : null;"""))
    page.shot("drawn")
    says(image == [256, 256], "a changed prompt is drawn, with progress, previews and the picture")
    jobs = server.ended()
    says(len(jobs) == 1 and jobs[0]["prompt"][2]["2"]["inputs"]["text"] == "a red house on the left",
         "the server ran what was typed")


def open_from_queue(page):
    page.click(by_test_id("queue-overlay-toggle"))
    page.js("app.graph.clear()")

    def chosen():
        picture = page.find(by_test_id("job-assets-list")).find_element(By.TAG_NAME, "img")
        ActionChains(page.driver).context_click(picture).perform()
        page.driver.find_element(By.XPATH, "//*[@role='menuitem' and contains(., 'Open as workflow')]").click()
        return True
    page.until("the job's menu", chosen)
    page.until("the picture's workflow", lambda: page.widget("prompt", "text") == "a red house on the left")
    page.shot("opened")
    says(True, "the picture's workflow is opened from the queue")


def drop_picture(page, folder):
    picture = next((folder / "output").glob("*.png"))
    page.js("app.graph.clear()")
    says(page.nodes() == [], "the graph is empty")
    page.js("""const bytes = Uint8Array.from(atob(arguments[0]), c => c.charCodeAt(0));
        const transfer = new DataTransfer();
        transfer.items.add(new File([bytes], 'dropped.png', {type: 'image/png'}));
        const canvas = document.querySelector('#graph-canvas');
        for (const type of ['dragenter', 'dragover', 'drop'])
          canvas.dispatchEvent(new DragEvent(type, {dataTransfer: transfer, bubbles: true, cancelable: true,
                                                    clientX: 800, clientY: 500}));""",
            base64.b64encode(picture.read_bytes()).decode())
    page.until("the dropped picture's workflow", lambda: page.widget("prompt", "text") == "a red house on the left")
    says(True, "a dropped picture brings its workflow")


def cancel_one(page, server):
    page.js("seen.length = 0")
    page.set_widget("sampler", "steps", 2000)
    page.click(by_test_id("queue-button"))
    page.until("progress", lambda: page.seen("progress"))
    page.click(by_label("Cancel current run"))
    page.until("the end of the job", lambda: page.seen("execution_interrupted"))
    says(not page.seen("execution_success"), "a running job is cancelled")
    queue = server.get("/queue")
    says(queue == {"queue_running": [], "queue_pending": []}, "nothing of it is left in the queue")


def queue_ten(page, server):
    before = len(server.ended())
    page.set_widget("sampler", "steps", 4)
    page.set_widget("sampler", "control_after_generate", "increment")
    count = page.find((By.CSS_SELECTOR, "input[aria-label='Batch Count'], [aria-label='Batch Count'] input"))
    count.click()
    count.send_keys(Keys.CONTROL, "a")
    count.send_keys("10", Keys.TAB)
    page.click(by_test_id("queue-button"))
    page.until("ten jobs", lambda: len(server.ended()) > before
               and len(server.get("/queue")["queue_pending"]) + len(server.get("/queue")["queue_running"]) > 0)
    page.driver.refresh()
    page.opened()
    page.until("the workflow after a reload", lambda: page.widget("prompt", "text") == "a red house on the left")
    page.until("messages after a reload", lambda: page.seen("execution_success") or page.seen("progress"))
    page.shot("reloaded")
    page.until("the last job", lambda: len(server.ended()) == before + 10)
    seeds = {job["prompt"][2]["5"]["inputs"]["seed"] for job in server.ended()[-10:]}
    says(len(seeds) == 10, "ten jobs are queued and done, with a reload in between")


def main():
    folder = pathlib.Path(tempfile.mkdtemp())
    server = page = None
    try:
        (folder / "input").mkdir()
        server = Server(folder)
        page = Page(server.url)
        draw_a_template(page, server)
        open_from_queue(page)
        drop_picture(page, folder)
        cancel_one(page, server)
        queue_ten(page, server)
        says(not (lines := page.complaints()), f"the browser has nothing to complain of {lines or ''}".rstrip())
        page.driver.quit()
        page = None
        says(server.stop() == 0, "the server ends")
        server = None
    finally:
        if page:
            print("\n".join(page.complaints()))
            page.driver.quit()
        if server:
            server.process.kill()
            print(server.log.read_text())
        shutil.rmtree(folder, ignore_errors=True)


main()
