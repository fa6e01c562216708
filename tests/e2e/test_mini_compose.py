"""The music model that comes with the program: that it is found, and that its songs are what was asked for."""

import json
import math
import unittest

import program
import tempo
from program import DATA, ROOT, ProgramTest
from tempo import read_wave

MODEL = ROOT / "models/assay-mini-compose"
PROMPT = "cheerful music with piano, acoustic bass and drums"
LINE = b"assay: no --model: assay-mini-compose, the small one that comes with the program\n"
MAJOR = (0, 2, 4, 5, 7, 9, 11)
NAMES = ("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B")
EVERY = 12  # samples of which one is kept to hear pitches by: 4 kHz


def lowered(left, right, rate):
    """Mono at a twelfth of the rate; the mean of each twelve is the filter."""
    mono = [a + b for a, b in zip(left, right)]
    return [sum(mono[i : i + EVERY]) / EVERY for i in range(0, len(mono) - EVERY, EVERY)], rate / EVERY


def loudness(samples, rate, hertz):
    """Amplitude at one frequency (Goertzel 1958), by quarters of a second: no loud moment outweighs the others."""
    turn, total, size = 2 * math.cos(2 * math.pi * hertz / rate), 0.0, int(rate / 4)
    for begin in range(0, len(samples) - size + 1, size):
        last = before = 0.0
        for sample in samples[begin : begin + size]:
            last, before = sample + turn * last - before, last
        total += math.sqrt(max(0.0, last * last + before * before - turn * last * before))
    return total


def pitch_classes(samples, rate):
    """Loudness of the twelve tones, C first, of the octaves from C3 to B5."""
    tones = [0.0] * 12
    for pitch in range(48, 84):
        tones[pitch % 12] += loudness(samples, rate, 440 * 2 ** ((pitch - 69) / 12))
    return tones


def best_major_key(tones):
    """The tonic on whose major scale the loudest tones lie."""
    return max(range(12), key=lambda tonic: sum(tones[(tonic + step) % 12] for step in MAJOR))


def likeness(a, b):
    """Correlation."""
    a, b = ([x - sum(v) / len(v) for x in v] for v in (a, b))
    return sum(x * y for x, y in zip(a, b)) / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


def chord(pitches, seconds, rate=4000):
    return [sum(math.sin(2 * math.pi * 440 * 2 ** ((p - 69) / 12) * i / rate) for p in pitches) for i in range(int(seconds * rate))]


class Hearing(unittest.TestCase):
    """What the songs are judged by, on sounds whose key is known."""

    def test_scales_are_told_apart(self):
        for tonic in range(12):
            scale = [chord([60 + tonic + step], 0.5) for step in MAJOR]
            heard = pitch_classes([s for tone in scale for s in tone], 4000)
            self.assertEqual(best_major_key(heard), tonic)

    def test_tempos_are_told_apart(self):
        for seed, bpm in enumerate((66, 84, 96, 108, 120, 132, 150, 168)):
            found = tempo.tempo(*tempo.made_song(bpm, seed=seed))
            self.assertTrue(tempo.is_near(found, bpm), (bpm, found))
            for other in (0.8 * bpm, 1.25 * bpm):
                self.assertFalse(tempo.is_near(found, other), (other, found))


class Songs(ProgramTest):
    def compose(self, *arguments, out="song.wav"):
        """The song's file and its description."""
        done = program.assay("compose", "--json", "-o", self.folder / out, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertEqual(done.stderr, LINE)
        return self.folder / out, json.loads(done.stdout)["songs"][0]

    def test_it_sings_where_no_model_is_named(self):
        path, song = self.compose("--prompt", PROMPT, "--duration", "8", "--seed", "7")
        left, right, rate = read_wave(path)
        self.assertEqual((rate, len(left), len(right)), (48000, 384000, 384000))
        self.assertEqual(song["seconds"], 8)
        loud = math.sqrt(sum(s * s for s in left) / len(left))
        self.assertGreater(loud, 1000)
        self.assertLess(max(map(abs, (*left, *right))), 32767)
        quarters = [left[i : i + 48000] for i in range(0, 384000, 48000)]
        self.assertGreater(min(max(map(abs, part)) for part in quarters), 500)  # something in every second

    def test_the_seed_makes_the_song(self):
        files = [self.compose("--prompt", PROMPT, "--duration", "2", "--seed", seed, out=f"{i}.wav")[0] for i, seed in enumerate((7, 7, 8))]
        first, again, other = (path.read_bytes() for path in files)
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)

    def test_the_key_asked_for_is_heard(self):
        """Or its neighbour a fifth above, which shares six of seven tones, where the song leans on the fifth."""
        steps = []
        for tonic in (0, 2, 3, 5, 7, 8, 10, 11):
            path, _ = self.compose("--prompt", "calm music with piano chords and bass", "--key", f"{NAMES[tonic]} major", "--bpm", "100",
                                   "--time-signature", "4", "--duration", "8", "--seed", 11 + tonic)  # fmt: skip
            steps.append((best_major_key(pitch_classes(*lowered(*read_wave(path)))) - tonic) % 12)
        self.assertGreaterEqual(sum(step in (0, 7) for step in steps), 7, steps)
        self.assertGreaterEqual(steps.count(0), 4, steps)

    def test_the_tempo_asked_for_is_heard(self):
        right = []
        for seed, bpm in enumerate((80, 100, 120, 140)):
            path, _ = self.compose("--prompt", PROMPT, "--bpm", bpm, "--time-signature", "4", "--duration", "8", "--seed", seed)
            right.append(tempo.is_near(tempo.tempo(*tempo.mono_of(path)), bpm))
        self.assertGreaterEqual(sum(right), 3, right)

    def test_a_long_song_keeps_its_tempo(self):
        path, _ = self.compose("--prompt", PROMPT, "--bpm", "110", "--time-signature", "4", "--duration", "40", "--seed", "7")
        samples, rate = tempo.mono_of(path)
        for begin in (26, 32):  # over the half minute, and after it
            self.assertTrue(tempo.is_near(tempo.tempo(samples[begin * rate : (begin + 8) * rate], rate), 110), begin)

    def test_a_plan_is_of_metadata_that_exists_and_five_codes_a_second(self):
        path, song = self.compose("--prompt", PROMPT, "--plan", "--duration", "10", "--seed", "4", "--steps", "1", "--taps", self.folder / "taps")
        self.assertIn(song["bpm"], range(30, 301))
        self.assertRegex(song["key"], "^[A-G][#b♯♭]? (major|minor)$")
        self.assertIn(song["time_signature"], ("2", "3", "4", "6"))
        raw = (self.folder / "taps/code_latents.safetensors").read_bytes()
        header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
        self.assertEqual(header["code_latents"]["shape"], [250, 64])  # five frames a code
        self.assertEqual(len(read_wave(path)[0]), 480000)

    def test_a_plan_completes_what_is_open_and_keeps_what_is_given(self):
        path, song = self.compose("--prompt", PROMPT, "--plan", "--duration", "12", "--seed", "3", "--bpm", "96", "--key", "D minor")
        self.assertEqual((song["bpm"], song["key"], song["seconds"]), (96, "D minor", 12))
        self.assertIn(song["time_signature"], ("2", "3", "4", "6"))
        named = self.compose("--prompt", PROMPT, "--duration", "12", "--seed", "3", "--planner", MODEL / "planner", "--bpm", "96",
                             "--key", "D minor", out="named.wav")[0]  # fmt: skip
        self.assertEqual(path.read_bytes(), named.read_bytes())
        plain = self.compose("--prompt", PROMPT, "--duration", "12", "--seed", "3", "--bpm", "96", "--key", "D minor",
                             "--time-signature", song["time_signature"], out="plain.wav")[0]  # fmt: skip
        self.assertNotEqual(path.read_bytes(), plain.read_bytes())

    def test_a_plan_takes_tempo_and_key_from_the_prompt(self):
        right = []
        for i, (bpm, key) in enumerate(((80, "C major"), (100, "A minor"), (120, "G major"), (140, "E minor"), (160, "F major"), (92, "D minor"))):
            words = f"{'happy' if 'major' in key else 'sad'} music with piano, bass and drums, {key}, {bpm} bpm"
            song = self.compose("--prompt", words, "--plan", "--duration", "10", "--seed", i, "--steps", "1", out=f"{i}.wav")[1]
            right += [abs(song["bpm"] / bpm - 1) <= 0.05, song["key"] == key]
        self.assertGreaterEqual(sum(right), 11, right)

    def test_metadata_alone_may_be_planned(self):
        """The song is then the one that is made where the same metadata are given."""
        planned, song = self.compose("--prompt", "happy music with piano, bass and drums, 110 bpm", "--plan", "--metadata-only",
                                     "--duration", "10", "--seed", "3")  # fmt: skip
        self.assertEqual((song["bpm"], song["seconds"]), (110, 10))
        given, _ = self.compose("--prompt", "happy music with piano, bass and drums, 110 bpm", "--duration", "10", "--seed", "3", "--bpm",
                                song["bpm"], "--key", song["key"], "--time-signature", song["time_signature"], out="given.wav")  # fmt: skip
        self.assertEqual(planned.read_bytes(), given.read_bytes())
        self.assertTrue(tempo.is_near(tempo.tempo(*tempo.mono_of(planned)), 110))
        _, song = self.compose("--prompt", "calm flute, 12 seconds", "--plan", "--metadata-only", "--seed", "3", "--steps", "1", out="long.wav")
        self.assertIn(song["seconds"], range(10, 17))

    def test_a_planner_with_more_codes_than_the_model_is_refused(self):
        model = self.folder / "model"
        (model / "audio_tokenizer").mkdir(parents=True)
        for part in MODEL.iterdir():
            if part.name != "audio_tokenizer":
                (model / part.name).symlink_to(part)
        for file in (MODEL / "audio_tokenizer").iterdir():
            (model / "audio_tokenizer" / file.name).write_bytes(file.read_bytes())
        file = model / "audio_tokenizer/config.json"
        config = json.loads(file.read_text())
        file.write_text(json.dumps({**config, "fsq_input_levels": [8, 5, 5, 4]}))
        arguments = ("compose", "--model", model, "--prompt", "x", "--plan", "--duration", "10", "--steps", "1", "-o", self.folder / "x.wav")
        message = self.fail_with(2, *arguments)
        self.assertIn("1000 audio codes", message)
        self.assertIn("at most the model's 800", message)
        self.assertEqual(program.assay(*arguments, "--metadata-only").returncode, 0)

    def test_a_cover_keeps_the_harmony(self):
        """The source's tones are more like the cover's than like those of a song in a far key."""
        source, _ = self.compose("--prompt", PROMPT, "--key", "D major", "--bpm", "120", "--duration", "6", "--seed", "5", out="source.wav")
        cover, song = self.compose("--prompt", "calm organ and strings", "--task", "cover", "--source", source, "--seed", "6", out="cover.wav")
        far, _ = self.compose("--prompt", "calm organ and strings", "--key", "G# major", "--duration", "6", "--seed", "6", out="far.wav")
        self.assertEqual(song["seconds"], 6)
        tones = [pitch_classes(*lowered(*read_wave(path))) for path in (source, cover, far)]
        self.assertGreater(likeness(tones[0], tones[1]), likeness(tones[0], tones[2]) + 0.3)

    def test_its_songs_are_those_of_the_training_code(self):
        for precision in ("fp32", "bf16"):
            done = program.assay("gate", "music", "--fixture", DATA / "assay-mini-compose.fixture.json", "--precision", precision)
            self.assertEqual(done.stderr, LINE)
            self.assertTrue(done.stdout.endswith(b"PASS\n"), done.stdout)

    def test_a_model_without_a_planner_has_none_of_its_own(self):
        message = self.fail_with(2, "compose", "--model", DATA / "ace-tiny", "--plan", "--prompt", "x", "-o", self.folder / "x.wav")
        self.assertIn("--plan: no planner in", message)
        self.assertIn("name one with --planner", message)
        message = self.fail_with(2, "compose", "--plan", "--planner", MODEL / "planner", "--prompt", "x", "-o", self.folder / "x.wav")
        self.assertIn("--plan", message)


if __name__ == "__main__":
    unittest.main()
