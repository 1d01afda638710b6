"""What ComfyUI's WanDancerEncodeAudio measures of a music, by numpy, scipy and torchaudio: 35 numbers for each 30th of a second.
Formulas: librosa's onset_strength, mfcc, chroma_cens, onset_detect and beat_track with their defaults, of a sound of 15,360 points
a second that is taken for one of 22,050, as the publishers of the model do. Needs numpy, scipy, torch and torchaudio."""

import numpy
import scipy.fft
import scipy.ndimage
import scipy.signal
import torch
import torchaudio

RATE, HOP, WINDOW, FRAMES = 22050.0, 512, 2048, 30
LOWEST, OCTAVES, STEPS = 32.70319566257483, 7, 36


def tune(seconds, rate=8000):
    """Two channels of notes on a beat and some noise: (rate, (2, N))."""
    noise = numpy.random.default_rng(5)
    count = int(seconds * rate)
    t = numpy.arange(count) / rate
    sound = numpy.zeros((2, count))
    for k, tone in enumerate((220.0, 277.2, 329.6, 440.0, 246.9, 311.1, 370.0, 493.9)):
        begin = 0.11 + 0.31 * k
        since = numpy.maximum(t - begin, 0)
        note = (t >= begin) * numpy.exp(-6 * since)
        for overtone in (1, 2, 3):
            sound += note * numpy.sin(2 * numpy.pi * 1.013 * tone * overtone * since) * numpy.array([[0.2], [0.15 * (k % 3)]]) / overtone
    sound += 0.01 * noise.standard_normal(sound.shape)
    return rate, torch.from_numpy(sound).float()


def cuts(sound, window, hop):
    """(frames, window) of a sound with zeros on both sides."""
    padded = numpy.pad(sound, window // 2)
    return numpy.lib.stride_tricks.sliding_window_view(padded, window)[::hop]


def hann(count):
    return scipy.signal.get_window("hann", count)


def mel_bands(rate, bands=128):
    knee, factor = 15.0, numpy.log(6.4) / 27
    to_mel = lambda f: numpy.where(f < 1000, f * 3 / 200, knee + numpy.log(numpy.maximum(f, 1) / 1000) / factor)  # noqa: E731
    to_hertz = lambda m: numpy.where(m < knee, m * 200 / 3, 1000 * numpy.exp(factor * (m - knee)))  # noqa: E731
    corners = to_hertz(numpy.linspace(0, to_mel(numpy.float64(rate / 2)), bands + 2))
    at = numpy.fft.rfftfreq(WINDOW, 1 / rate)
    left, middle, right = (corners[i : i + bands, None] for i in range(3))
    return numpy.maximum(0, numpy.minimum((at - left) / (middle - left), (right - at) / (right - middle))) * 2 / (right - left)


def loudness(sound, rate):
    """In decibels: (bands, frames)."""
    powers = numpy.abs(numpy.fft.rfft(cuts(sound, WINDOW, HOP) * hann(WINDOW))) ** 2
    return 10 * numpy.log10(numpy.maximum(1e-10, mel_bands(rate) @ powers.T))


def rises(levels):
    """How much louder bands become: (frames)."""
    mean = numpy.maximum(0, numpy.diff(levels)).mean(0)
    return numpy.pad(mean, (1 + WINDOW // (2 * HOP), 0))[: levels.shape[1]]


def tempo(envelope, rate, start):
    """Beats a minute, by how like the envelope is to itself later."""
    count = len(envelope)
    if count < 20:
        return 120.0
    window = min(int(numpy.round(8 * rate / HOP)), count)
    side = window // 2
    padded = numpy.pad(envelope, side, mode="linear_ramp", end_values=0)
    total = numpy.zeros(window)
    for i in range(count):
        part = padded[i : i + window] * hann(window)
        like = numpy.correlate(part, part, "full")[window - 1 :]
        largest = numpy.abs(like).max()
        total += like / largest if largest > 0 else like
    mean = numpy.maximum(total / count, 0)
    beats = 60 * rate / (HOP * numpy.arange(1, window))
    liked = numpy.log1p(1e6 * mean[1:]) - 0.5 * numpy.log2(beats / start) ** 2
    if (beats < 320).any():
        liked[beats >= 320] = -numpy.inf
    return beats[numpy.argmax(liked)]


def onsets(envelope):
    """1 where a sound begins."""
    x = envelope - envelope.min()
    x = x / x.max() if x.max() > 0 else x
    found, n = numpy.zeros(len(x)), 0
    while n < len(x):
        near, around = x[max(0, n - 1) : n + 1], x[max(0, n - 4) : n + 5]
        if x[n] == near.max() and x[n] >= around.mean() + 0.07:
            found[n] = 1
            n += 1
        n += 1
    return found


def beats(envelope, bpm):
    """1 where a beat is. Dynamic programming by D. Ellis, 2007."""
    count = len(envelope)
    found = numpy.zeros(count)
    period = int(numpy.round(RATE / HOP * 60 / bpm))
    if count < 2 or period < 1:
        return found
    spread = envelope.std(ddof=1)
    x = envelope / spread if spread > 0 else envelope
    reach = numpy.arange(-period, period + 1)
    score = numpy.convolve(x, numpy.exp(-0.5 * (reach * 32 / period) ** 2))[period : period + count]
    best, back, is_first = score.copy(), numpy.full(count, -1), True
    for i in range(1, count):
        before = numpy.arange(i - int(numpy.round(period / 2)), max(i - 2 * period - 1, -1), -1)
        if len(before):
            told = best[before] - 100 * (numpy.log(i - before) - numpy.log(period)) ** 2
            k = int(numpy.argmax(told))
            best[i] += told[k]
        if not (is_first and score[i] < 0.01 * score.max()):
            back[i], is_first = before[k] if len(before) else -1, False
    peaks = [i for i in range(1, count) if best[i] > best[i - 1] and (i + 1 == count or best[i] >= best[i + 1])]
    tail = max((i for i in peaks if best[i] >= numpy.median(best[peaks]) / 2), default=-1) if peaks else count - 1
    while tail >= 0:
        found[tail], tail = 1, back[tail]
    at = numpy.flatnonzero(found)
    if len(at):
        smooth = numpy.convolve(score[at], [0, 0.5, 1, 0.5, 0])[2 : count + 2]
        loud = numpy.flatnonzero(score > 0.5 * numpy.sqrt((smooth**2).mean()))
        if len(loud) == 0:
            return numpy.zeros(count)
        found[: loud[0]], found[loud[-1] + 1 :] = 0, 0
    return found


def detuning(sound):
    """In steps of 36 an octave, to a hundredth."""
    if len(sound) < WINDOW:
        return 0.0
    s = numpy.abs(numpy.fft.rfft(cuts(sound, WINDOW, HOP) * hann(WINDOW))).T
    before, here, after = s[:-2], s[1:-1], s[2:]
    bend, slope = after + before - 2 * here, (after - before) / 2
    move = numpy.where(numpy.abs(slope) < numpy.abs(bend), -slope / numpy.where(bend == 0, 1, bend), 0)
    loud = s * (s > 0.1 * s.max(0))
    is_peak = (loud[1:-1] > loud[:-2]) & (loud[1:-1] >= loud[2:])
    at = numpy.arange(1, len(s) - 1)[:, None]
    is_peak &= (at * RATE / WINDOW >= 150) & (at * RATE / WINDOW < 4000)
    pitch, height = ((at + move) * RATE / WINDOW)[is_peak], (here + 0.5 * slope * move)[is_peak]
    if len(pitch) == 0:
        return 0.0
    pitch = pitch[height >= numpy.median(height)]
    rest = numpy.mod(STEPS * numpy.log2(pitch / 27.5), 1.0)
    rest[rest >= 0.5] -= 1
    counts, edges = numpy.histogram(rest, numpy.linspace(-0.5, 0.5, 101))
    return edges[numpy.argmax(counts)]


def halved(sound):
    made = scipy.signal.resample_poly(sound, 1, 2)
    return made[: (len(sound) + 1) // 2] * numpy.sqrt(2)


def constant_q(sound):
    """Magnitudes at 36 steps of seven octaves: (252, frames)."""
    pitches = LOWEST * 2 ** ((numpy.arange(OCTAVES * STEPS) + detuning(sound)) / STEPS)
    share = 2 ** (2 / STEPS)
    lengths = (share + 1) / (share - 1) * RATE / pitches
    rate, hop, frames, rows = RATE, HOP, 1 + len(sound) // HOP, []
    for octave in range(OCTAVES):
        part = slice(len(pitches) - STEPS * (octave + 1), len(pitches) - STEPS * octave)
        sizes = lengths[part] * rate / RATE
        window = int(2 ** numpy.ceil(numpy.log2(sizes.max())))
        filters = numpy.zeros((STEPS, window), complex)
        for row, size, pitch in zip(filters, sizes, pitches[part]):
            t = numpy.arange(int(numpy.floor(-size / 2)), int(numpy.floor(size / 2)))
            wave = numpy.exp(2j * numpy.pi * t * pitch / rate) * hann(len(t))
            begin = (window - len(t)) // 2
            row[begin : begin + len(t)] = wave / numpy.abs(wave).sum() * size / window
        shapes = numpy.fft.fft(filters)[:, : window // 2 + 1]
        for row in shapes:  # the weakest hundredth is left out
            heights = numpy.sort(numpy.abs(row))
            least = heights[numpy.argmin(numpy.cumsum(heights) / heights.sum() < 0.01)]
            row[numpy.abs(row) < least] = 0
        seen = shapes @ numpy.fft.rfft(cuts(sound, window, hop)).T * numpy.sqrt(RATE / rate)
        rows.insert(0, seen[:, :frames])
        sound, rate, hop = halved(sound), rate / 2, hop // 2
    return numpy.abs(numpy.concatenate(rows)) / numpy.sqrt(lengths)[:, None]


def chroma(sound):
    """(frames, 12)."""
    loud = numpy.roll(constant_q(sound), 1, 0)  # a note is the step below, its own and the one above
    notes = numpy.zeros((12, loud.shape[1]))
    for i in range(len(loud)):
        notes[i % STEPS // 3] += loud[i]
    notes = notes / numpy.maximum(notes.sum(0), numpy.finfo(numpy.float32).tiny)
    steps = sum(0.25 * (notes > step) for step in (0.4, 0.2, 0.1, 0.05))
    window = scipy.signal.get_window("hann", 43, fftbins=False)
    smooth = scipy.ndimage.convolve1d(steps, window / window.sum(), mode="constant")
    return (smooth / numpy.maximum(numpy.sqrt((smooth**2).sum(0)), numpy.finfo(numpy.float32).tiny)).T


def features(waveform, rate):
    """waveform (channels, N) -> (frames, 35) f32."""
    sound = waveform.double().mean(0)
    start = 120.0 if len(sound) < 10 * HOP else tempo(rises(loudness(sound.numpy(), rate)), rate, 120.0)
    sound = torchaudio.functional.resample(sound, rate, FRAMES * HOP).numpy()
    levels = loudness(sound, RATE)
    levels = numpy.maximum(levels, levels.max() - 80)
    envelope = rises(levels)
    cepstrum = scipy.fft.dct(levels, axis=0, norm="ortho")[:20].T
    marks = onsets(envelope), beats(envelope, tempo(envelope, RATE, start))
    columns = [envelope[:, None], cepstrum, chroma(sound), *(mark[:, None] for mark in marks)]
    return torch.from_numpy(numpy.concatenate(columns, 1)).float()


def fps(frames, length):
    return FRAMES / int(frames / length + 0.5)
