#!/usr/bin/python3
"""What sdk/python gives, used as a program would: python_test.py SAMPLE_PLUGINS. What needs NumPy or PyTorch is left out without them."""

import ast
import asyncio
import gc
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import weakref

import heddle
from heddle import _native

try:
    import numpy
except ImportError:
    numpy = None
try:
    import torch
except ImportError:
    torch = None

PLUGINS = sys.argv[1]
ISOLATED = [PLUGINS, os.path.join(PLUGINS, "isolated")]
PACKS = pathlib.Path(__file__).resolve().parent.parent / "python_nodes"
HELLO = {"greet": {"class_type": "demo.hello", "inputs": {"name": "Python", "times": 2}},
         "show": {"class_type": "PreviewAny", "inputs": {"source": ["greet", 0]}}}
WAIT = {"wait": {"class_type": "test.wait", "inputs": {}}, "end": {"class_type": "test.keep", "inputs": {"value": ["wait", 0]}}}
RAMP = {"ramp": {"class_type": "test.ramp", "inputs": {"start": 1}}, "end": {"class_type": "test.keep", "inputs": {"value": ["ramp", 0]}}}
FAIL = {"fail": {"class_type": "test.fail", "inputs": {}}, "end": {"class_type": "test.keep", "inputs": {"value": ["fail", 0]}}}
DRAW = {"draw": {"class_type": "test.draw", "inputs": {}}, "end": {"class_type": "test.keep", "inputs": {"value": ["draw", 0]}}}
GUARD = 60  # seconds, after which something hangs


def engine(**options):
    return heddle.Engine(devices="cpu", plugins=PLUGINS, output=tempfile.gettempdir(), **options)


def raises(kind, work):
    try:
        work()
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} is not raised")


def begun(e, flow=WAIT, **options):
    """A run that is in its node."""
    reached = threading.Event()
    run = e.start(flow, on_event=lambda event: event.kind == "node_progress" and reached.set(), **options)
    assert reached.wait(GUARD)
    return run


def it_is_the_wheel_and_not_the_checkout():
    assert "site-packages" in heddle.__file__, heddle.__file__
    with heddle.Engine(devices="cpu") as e:
        for plugin in e.plugins():
            assert pathlib.Path(plugin.path).resolve().is_relative_to(pathlib.Path(heddle.__file__).resolve().parent), plugin
        assert {"org.heddle.cpu", "org.heddle.core"} <= {plugin.id for plugin in e.plugins()}


def a_run_gives_results_and_tells_events():
    events = []
    with engine() as e:
        results = e.run(HELLO, fetch=["greet.greeting"], on_event=events.append)
        assert results.text("greet.greeting") == "Hello, Python! Hello, Python! "
        assert results.ui["show"]["text"] == ["Hello, Python! Hello, Python! "]
        assert [stage.class_type for stage in results.stages] == ["demo.hello", "PreviewAny"]
        again = e.run(HELLO)
        assert all(stage.cached for stage in again.stages if stage.node == "greet")
        assert e.drop_cached() > 0
    kinds = [(event.kind, event.node) for event in events]
    assert kinds[0] == ("node_started", "greet") and kinds[-1] == ("node_done", "show"), kinds
    assert [event.fraction for event in events if event.kind == "node_progress" and event.node == "greet"] == [0.5, 1.0]
    assert len({event.run for event in events}) == 1
    assert json.loads(next(event for event in events if event.kind == "node_shows").text)["text"] == results.ui["show"]["text"]


def workflows_are_dicts_files_or_loaded():
    with engine() as e, tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "hello.json"
        path.write_text(json.dumps(HELLO))
        flow = e.load(path)
        flow.set("greet.times", 1)
        flow.set("greet.name", "1")
        assert e.run(flow, fetch="greet.greeting").text("greet.greeting") == "Hello, 1! "
        assert flow.to_dict()["greet"]["inputs"] == {"name": "1", "times": 1}
        assert e.run(str(path), fetch="greet.greeting", inputs={"greet.name": "you"}).text("greet.greeting") == "Hello, you! Hello, you! "
        assert e.convert(path)["show"]["class_type"] == "PreviewAny"


def a_plan_is_a_text_or_a_dict():
    with engine() as e:
        assert "demo.hello" in e.plan(HELLO)
        assert "demo.hello" in json.dumps(e.plan(HELLO, as_dict=True))
        assert e.devices()[0]["id"].startswith("cpu")
        assert "demo.hello" in e.node_types() and "demo.hello" in e.object_info("demo.hello")


def errors_are_typed():
    with engine() as e:
        error = raises(heddle.InvalidArgument, lambda: e.run(FAIL))
        assert isinstance(error, ValueError) and isinstance(error, heddle.Error)
        assert error.code == 1 and "it was asked to fail" in str(error) and "node 'fail' (test.fail)" in error.trail, error.trail
        assert "no loaded plugin" in str(raises(heddle.Error, lambda: e.run({"1": {"class_type": "None", "inputs": {}}})))
        assert "no loaded plugin" in e.check({"1": {"class_type": "None", "inputs": {}}}).errors[0]
        assert raises(heddle.Error, lambda: e.run("nothing.json")).code != 0
        raises(heddle.NotFound, lambda: e.run(RAMP)["ramp.out"])
        raises(TypeError, lambda: e.start(HELLO, nonsense=1))
        raises(TypeError, lambda: e.start(HELLO, inputs={"greet.name": object()}))
    raises(heddle.Error, lambda: e.plan(HELLO))
    raises(ValueError, lambda: engine(budgets={"cpu": "much"}))
    raises(ValueError, lambda: engine(budgets={"cpu": 14e9}))
    raises(heddle.Error, lambda: heddle.Engine(devices="nonsense"))


def isolated(**options):
    return heddle.Engine(devices="cpu", plugins=ISOLATED, output=tempfile.gettempdir(), isolate="sample_isolated", **options)


def ends(how):
    return {"end": {"class_type": "test.isolated.end", "inputs": {"how": how, "value": 41}},
            "keep": {"class_type": "test.keep", "inputs": {"value": ["end", 0]}}}


def a_crash_of_an_isolated_plugin_is_an_error_of_its_run():
    with isolated() as e:
        other = begun(e)
        for how, word in (("abort", "SIGABRT"), ("null", "SIGSEGV"), ("exit", "exit code 3")):
            error = raises(heddle.InternalError, lambda: e.run(ends(how)))
            assert error.code == 7 and word in str(error) and "'org.heddle.tests.isolated'" in str(error), error
            assert "node 'end' (test.isolated.end)" in error.trail, error.trail
        assert "it was asked to fail" in str(raises(heddle.InvalidArgument, lambda: e.run(ends("throw"))))
        assert e.run(ends(""), fetch="end.out").text("end.out") == "42"
        assert not other.done()


def isolated_plugins_have_limits():
    with isolated(isolate_timeout=1) as e:
        assert "has not ended within 1 s" in str(raises(heddle.InternalError, lambda: e.run(ends("hang"))))
        assert e.run(ends(""), fetch="end.out").text("end.out") == "42"
    with isolated(isolate_memory="512MiB", isolate_sandbox=True) as e:
        assert "memory is exhausted" in str(raises(heddle.OutOfMemory, lambda: e.run(ends("memory"))))
    for name in ("org.heddle.tests.isolated", pathlib.Path(ISOLATED[1]) / "sample_isolated.so"):
        with heddle.Engine(devices="cpu", plugins=ISOLATED, isolate=[name]) as e:
            raises(heddle.InternalError, lambda: e.run(ends("exit")))
    assert "sample_isolated" in str(raises(heddle.NotFound, lambda: heddle.Engine(devices="cpu", plugins=ISOLATED, isolate="sample_isolatd")))
    for wrong in ({"isolate_memory": "60%"}, {"isolate_memory": -1}, {"isolate_timeout": -1}, {"isolate_timeout": float("nan")}):
        raises(ValueError, lambda: isolated(**wrong))


def shown(class_type, **inputs):
    return {"node": {"class_type": class_type, "inputs": inputs}, "show": {"class_type": "PreviewAny", "inputs": {"source": ["node", 0]}}}


def tells(e, text):
    """What a node in Python makes of that expression."""
    flow = {**shown("t.Tell", value=["give", 0]), "give": {"class_type": "t.Give", "inputs": {"text": text}}}
    return e.run(flow, fetch="node.STRING").text("node.STRING")


def packs_of_nodes_in_python_run():
    with heddle.Engine(devices="cpu", python_nodes=PACKS / "packs", isolate_timeout=1) as e:
        results = e.run(shown("t.Join", text="a", times=3), fetch=["node.joined", "node.count"])
        assert results.text("node.joined") == "a,a,a" and results.text("node.count") == "3"
        told = {plugin.id: plugin for plugin in e.plugins()}["python.contract"]
        assert not told.refused and "t.Join" in told.brings["nodes"], told
        error = raises(heddle.InvalidArgument, lambda: e.run(shown("t.End", how="raise")))
        assert "the pack 'contract': ValueError: a node failed on purpose (contract/basics.py:" in str(error), error
        for how, word in (("kill", "SIGKILL"), ("hang", "has not ended within 1 s")):
            assert word in str(raises(heddle.InternalError, lambda: e.run(shown("t.End", how=how))))


def the_interpreter_of_packs_is_this_one():
    ask = "[__import__('sys').prefix, __import__('os').getpid(), __import__('sys').executable]"
    with heddle.Engine(devices="cpu", python_nodes=[PACKS / "packs"]) as e:
        prefix, process, executable = ast.literal_eval(tells(e, ask)[len("list "):])
        assert prefix == sys.prefix and process != os.getpid() and executable == sys.executable, (prefix, executable)
    with tempfile.TemporaryDirectory() as folder:
        python = pathlib.Path(folder) / "mine"
        python.symlink_to(os.path.realpath(sys.executable))
        with heddle.Engine(devices="cpu", python_nodes=[PACKS / "packs"], python=python) as e:
            assert tells(e, "__import__('sys').executable") == f"str {str(python)!r}"
        with heddle.Engine(devices="cpu", python_nodes=[PACKS / "packs"], python=python.with_name("none")) as e:
            assert any("is no program" in plugin.refused for plugin in e.plugins()), e.plugins()


def packs_get_and_give_tensors():
    with heddle.Engine(devices="cpu", python_nodes=[PACKS / "tensors"]) as e:
        given = numpy.linspace(0, 1, 2 * 64 * 128 * 3, dtype=numpy.float32).reshape(2, 64, 128, 3)
        flow = {**shown("x.Scale", image=["empty", 0]), "empty": {"class_type": "EmptyImage", "inputs": {"width": 8, "height": 8}}}
        made = numpy.from_dlpack(e.run(flow, inputs={"node.image": given}, fetch="node.IMAGE")["node.IMAGE"])
        assert numpy.array_equal(made, given / 2) and given.max() == 1


def budgets_are_bytes_shares_or_texts():
    for size, expected in ((1 << 30, 1 << 30), ("1GiB", 1 << 30), ("1.5g", 3 << 29), ("512MiB", 1 << 29)):
        with engine(budgets={"cpu": size}) as e:
            assert str(expected) in json.dumps(e.devices()), (size, e.devices())


def a_run_is_cancelled():
    with engine() as e:
        run = begun(e)
        assert not run.done()
        raises(TimeoutError, lambda: run.wait(0.01))
        run.cancel()
        assert raises(heddle.Cancelled, lambda: run.wait(GUARD)).code == 5
        assert run.done()


def a_run_pauses_from_its_own_event_and_goes_on():
    with engine() as e:
        told = []

        def pause(event):
            told.append(event.node)
            if event.kind == "node_done" and event.node == "greet":
                runs[0].pause()
                paused.set()

        runs, paused, ready = [], threading.Event(), threading.Event()
        runs.append(e.start(HELLO, on_event=lambda event: ready.wait(GUARD) and pause(event), anew=True))
        ready.set()
        assert paused.wait(GUARD)
        raises(TimeoutError, lambda: runs[0].wait(0.2))
        assert "show" not in told
        runs[0].resume()
        runs[0].wait(GUARD)
        assert "show" in told


def other_threads_go_on_while_one_waits():
    with engine() as e:
        run, counted = begun(e), 0

        def count():
            nonlocal counted
            for counted in range(1, 1001):
                time.sleep(0)
            run.cancel()

        threading.Thread(target=count).start()
        raises(heddle.Cancelled, run.wait)  # holding the lock would keep the other thread from ever cancelling it
        assert counted == 1000


def asyncio_awaits_two_runs_at_once():
    async def main():
        loop, threads = asyncio.get_running_loop(), set()
        reached = asyncio.Event()

        def on_event(event):
            threads.add(threading.get_ident())
            if event.kind == "node_progress" and event.node == "wait":
                reached.set()

        with engine() as e:
            first = asyncio.ensure_future(e.start(WAIT, on_event=on_event))
            await asyncio.wait_for(reached.wait(), GUARD)
            # The other begins and ends beside it.
            results = await e.start(HELLO, fetch=["greet.greeting"], on_event=on_event)
            assert results.text("greet.greeting").startswith("Hello, Python!") and not first.done()
            both = await asyncio.gather(e.start(RAMP, anew=True), e.start(HELLO, anew=True))
            assert all(not stage.cached for results in both for stage in results.stages)
            first.cancel()
            try:
                await first
                raise AssertionError("it is not cancelled")
            except asyncio.CancelledError:
                pass
            try:
                await e.start(FAIL)
                raise AssertionError("it did not fail")
            except heddle.InvalidArgument as error:
                assert error.code == 1
            assert threads == {threading.get_ident()} and loop.is_running()
            # Cancelled by somebody else, awaited twice.
            run = e.start(WAIT)
            loop.call_later(0.05, run.cancel)
            for outcome in await asyncio.gather(run, run, return_exceptions=True):
                assert isinstance(outcome, heddle.Cancelled), outcome

    asyncio.run(main())


def cancelling_the_task_cancels_the_run():
    async def main():
        with engine() as e:
            run = e.start(WAIT)
            try:
                await asyncio.wait_for(run, 0.1)
                raise AssertionError("no time-out")
            except asyncio.TimeoutError:
                pass
            raises(heddle.Cancelled, lambda: run.wait(GUARD))

    asyncio.run(main())


def previews_are_pictures():
    with engine() as e:
        previews = []
        e.run(DRAW, previews="latent2rgb", on_event=lambda event: event.preview and previews.append(event.preview))
        assert [(p.step, p.step_count, p.image.shape, p.image.dtype) for p in previews] == [(s, 3, (1, 2, 3), "uint8") for s in (1, 2, 3)]
        if numpy:
            assert numpy.from_dlpack(previews[2].image).tolist() == [[[99, 99, 99], [100, 100, 100]]]


def what_an_event_function_raises_does_not_stop_the_run():
    seen, before = [], sys.unraisablehook
    sys.unraisablehook = lambda args: seen.append(str(args.exc_value))
    try:
        with engine() as e:
            assert e.run(HELLO, on_event=lambda event: 1 // 0, fetch="greet.greeting").text("greet.greeting")
    finally:
        sys.unraisablehook = before
    assert len(seen) > 3 and "division" in seen[0], seen


def a_run_that_leads_to_itself_is_collected():
    with engine() as e:
        class Holder:
            def on_event(self, event):
                pass

        holder = Holder()
        holder.run = e.start(WAIT, on_event=holder.on_event)
        gone = weakref.ref(holder)
        del holder
        gc.collect()
        assert gone() is None


def collected_on_a_thread_of_its_own():
    with engine() as e:
        def on_event(event):
            if event.kind == "node_progress":
                runs.clear()  # the last one who has the run
                dropped.set()

        runs, dropped, ready = [], threading.Event(), threading.Event()
        runs.append(e.start(WAIT, on_event=lambda event: ready.wait(GUARD) and on_event(event)))
        ready.set()
        assert dropped.wait(GUARD)


def log_gets_messages():
    messages = []
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "cut.so").write_bytes(b"\x7fELF")
        with heddle.Engine(devices="cpu", plugins=[folder], log=lambda level, text: messages.append((level, text))):
            pass
    assert any("cut.so" in text and level >= 2 for level, text in messages), messages


def ctrl_c_ends_a_run():
    with engine() as e:
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        raises(KeyboardInterrupt, lambda: e.run(WAIT))
        timer.join()


def the_stub_names_what_there_is():
    tree = ast.parse((pathlib.Path(heddle.__file__).parent / "_native.pyi").read_text())
    stub = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            stub[node.name] = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
        elif isinstance(node, ast.FunctionDef):
            stub[node.name] = None
    there = {name: {n for n in vars(value) if not n.startswith("__") or n.startswith("__dlpack")} if isinstance(value, type) else None
             for name, value in vars(_native).items() if not name.startswith("__")}
    for names in stub.values():
        if names is not None:
            names.discard("__init__")
    differ = {name: (stub.get(name), there.get(name)) for name in stub.keys() | there.keys() if stub.get(name) != there.get(name)}
    assert stub == there, differ
    assert all(hasattr(heddle, name) for name in heddle.__all__)


ENDINGS = {
    "a run under way": "run = e.start(WAIT, on_event=lambda event: None)",
    "a thread that waits": "run = e.start(WAIT, on_event=print)\nthreading.Thread(target=run.wait, daemon=True).start()\ntime.sleep(0.2)",
    "a loop that is gone": "async def main():\n  run = e.start(WAIT, on_event=print)\n  asyncio.ensure_future(run)\n"
                           "  await asyncio.sleep(0.2)\n  return run\nrun = asyncio.run(main())",
    "an engine nobody has": "run = e.start(WAIT)\ndel e",
    "an exception": "run = e.start(WAIT, on_event=print)\nsys.exit(7)",
}


def the_interpreter_ends_with():
    for name, code in ENDINGS.items():
        program = f"import asyncio, heddle, sys, threading, time\nWAIT = {WAIT!r}\ne = heddle.Engine(devices='cpu', plugins={PLUGINS!r})\n{code}\n"
        ended = subprocess.run([sys.executable, "-X", "faulthandler", "-c", program], capture_output=True, text=True, timeout=GUARD)
        assert ended.returncode == (7 if name == "an exception" else 0), (name, ended)
        assert "Fatal" not in ended.stderr and "leaked" not in ended.stderr, (name, ended.stderr)


def numpy_reads_and_writes_in_place():
    with engine() as e:
        results = e.run(RAMP, fetch=["ramp.out"])
        tensor = results["ramp.out"]
        assert tensor.shape == (1, 1, 4) and tensor.dtype == "float32" and tensor.__dlpack_device__() == (1, 0)
        first, second = numpy.from_dlpack(tensor), numpy.from_dlpack(tensor)
        assert first.tolist() == [[[1, 2, 3, 4]]] and numpy.shares_memory(first, second)
        first[0, 0, 0] = 9
        assert second[0, 0, 0] == 9 and results["ramp.out"].shape == (1, 1, 4)
        assert numpy.from_dlpack(results["ramp.out"])[0, 0, 0] == 1  # the engine's own is as it was
        assert not numpy.shares_memory(first, numpy.from_dlpack(tensor, copy=True))
        raises(BufferError, lambda: tensor.__dlpack__(dl_device=(2, 0)))


def numpy_is_read_in_place():
    class Array(numpy.ndarray):
        pass

    with engine() as e:
        array = numpy.arange(6, dtype=numpy.float32).reshape(2, 3).view(Array)
        results = e.run(RAMP, inputs={"end.value": array}, fetch=["end.out"])
        assert numpy.from_dlpack(results["end.out"]).tolist() == [[0, 1, 2], [3, 4, 5]]
        # The result is what was given: a change of that shows there.
        array[1, 2] = 50
        assert numpy.from_dlpack(results["end.out"])[1, 2] == 50
        gone = weakref.ref(array)
        del array
        gc.collect()
        assert gone() is not None  # the result has it
        del results
        e.drop_cached()
        gc.collect()
        assert gone() is None
        # Of a call that fails it is given back, too.
        other = numpy.zeros(4, numpy.float32).view(Array)
        raises(heddle.Error, lambda: e.run(RAMP, inputs={"nobody.value": other}))
        raises(TypeError, lambda: e.run(RAMP, inputs={"end.value": other, "ramp.start": object()}))
        gone = weakref.ref(other)
        del other
        gc.collect()
        assert gone() is None
        latent = {"samples": numpy.ones((1, 4, 2, 2), numpy.float32)}
        results = e.run(RAMP, inputs={"end.value": latent}, fetch=["end.out"])
        assert results.tensor("end.out", "samples").shape == (1, 4, 2, 2)


def tensors_outlive_the_engine():
    e = engine()
    results = e.run(RAMP, fetch=["ramp.out"])
    tensor = results["ramp.out"]
    array = numpy.from_dlpack(tensor)
    e.close()
    raises(heddle.Error, lambda: results["ramp.out"])
    del e, results, tensor
    gc.collect()
    filler = [numpy.full(4, 7, numpy.float32) for _ in range(1000)]
    assert array.tolist() == [[[1, 2, 3, 4]]] and len(filler) == 1000


def torch_shares_tensors():
    with engine() as e:
        given = torch.arange(4, dtype=torch.bfloat16)
        results = e.run(RAMP, inputs={"end.value": given}, fetch=["end.out"])
        tensor = results["end.out"]
        assert tensor.dtype == "bfloat16"
        first, second = torch.from_dlpack(tensor), torch.from_dlpack(tensor)
        assert first.data_ptr() == second.data_ptr() and torch.equal(first, given)
        del results, tensor
    gc.collect()
    assert torch.equal(first, given)


def main():
    needs = {"numpy_reads_and_writes_in_place": numpy, "numpy_is_read_in_place": numpy, "tensors_outlive_the_engine": numpy,
             "packs_get_and_give_tensors": numpy, "torch_shares_tensors": torch}
    helpers = {"engine", "isolated", "ends", "shown", "tells", "raises", "begun", "main"}
    failures = passed = 0
    for name, test in list(globals().items()):
        if not callable(test) or name in helpers or getattr(test, "__module__", "") != "__main__":
            continue
        if needs.get(name, True) is None:
            print(f"left out: {name}")
            continue
        try:
            test()
            passed += 1
        except BaseException:
            failures += 1
            print(f"FAILED: {name}")
            traceback.print_exc()
    print(f"{passed} passed, {failures} failed")
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main())
