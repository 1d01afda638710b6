"""What tests of pages share: a `heddle serve` of its own, and a headless Chromium that looks at it.

Needs Debian's chromium, chromium-driver and python3-selenium; where one of these is missing the test says so and passes.
"""

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request

SECONDS = 180  # until what is waited for has to be there; other tests run beside this one
WIDE = (1600, 1000)


def skip(why):
    print(f"skipped: {os.path.basename(sys.argv[0])}: {why}")
    sys.exit(0)


try:
    from selenium import webdriver
    from selenium.common.exceptions import WebDriverException
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
except ImportError:
    skip("python3-selenium is not installed")
for tool in ("chromium", "chromedriver"):
    if shutil.which(tool) is None:
        skip(f"{tool} is not installed")


def says(condition, what):
    if not condition:
        raise AssertionError(what)
    print(what, flush=True)


class Server:
    """On the processor, with the shipped model. Everything that it writes is in `folder`."""

    def __init__(self, program, graphs, folder, *options, **environment):
        (folder / "input").mkdir(parents=True)
        environment = dict(os.environ, HOME=str(folder), HEDDLE_PLUGINS="", **environment)
        for name in ("CONFIG", "CACHE", "STATE"):
            environment[f"XDG_{name}_HOME"] = str(folder / name.lower())
        self.log = folder / "log"
        command = [program, "serve", "--port", "0", "--json", "--devices", "cpu", "--output", folder / "output",
                   "--input", folder / "input", "--models", graphs / "models", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log.open("w"), env=environment, text=True)
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"no address: {self.log.read_text()}")
        self.url = json.loads(line)["url"]

    def get(self, path, body=None):
        """With a body it is a POST."""
        with urllib.request.urlopen(self.url + path, None if body is None else json.dumps(body).encode()) as reply:
            return json.load(reply)

    def stop(self):
        self.process.terminate()
        return self.process.wait(timeout=SECONDS)


class Browser:
    """One page. Elements are named by CSS selectors; screenshots are for people, into a folder or nowhere."""

    def __init__(self, url, screenshots=None):
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=%d,%d" % WIDE):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        try:
            self.driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
        except WebDriverException as error:  # no fault of what is tested
            skip(f"chromium does not start here: {error.msg}".replace("\n", " "))
        self.driver.set_script_timeout(SECONDS)
        self.screenshots, self.shots = screenshots, 0
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
            time.sleep(0.05)
        self.shot("failed")
        raise AssertionError(f"{what}: not within {SECONDS} s ({error})")

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def find(self, selector, what=""):
        return self.until(what or f"{selector} is shown",
                          lambda: next((e for e in self.all(selector) if e.is_displayed()), None))

    def click(self, selector):
        def clicked():
            element = self.find(selector)
            self.js("arguments[0].scrollIntoView({block: 'center'})", element)  # from below what stays in sight
            element.click()
            return True
        self.until(f"{selector} can be clicked", clicked)

    def shot(self, name):
        if self.screenshots:
            self.screenshots.mkdir(parents=True, exist_ok=True)
            self.shots += 1
            self.driver.save_screenshot(str(self.screenshots / f"{self.shots:02}_{name}.png"))

    def complaints(self):
        """(level, message) of the browser's console, since the last call."""
        return [(entry["level"], entry["message"]) for entry in self.driver.get_log("browser")]
