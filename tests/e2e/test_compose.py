"""assay compose: songs from text, codes and other songs; what it refuses; that it stops and leaves nothing behind."""

import json
import math
import os
import resource
import signal
import struct
import subprocess
import sys
import time
import unittest
import wave

import program
from program import DATA, PROGRAM, ROOT, ProgramTest

sys.path.insert(0, str(ROOT / "oracle"))
import make_ace_variants  # noqa: E402

TINY = DATA / "ace-tiny"
SONG = ("--prompt", "calm piano", "--duration", "0.4", "--steps", "2", "--seed", "7")


def write_tone(path, seconds=0.8, rate=48000, channels=2, width=2):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        for i in range(int(seconds * rate)):
            value = 0.4 * math.sin(2 * math.pi * 330 * i / rate)
            sample = bytes([int(127.5 + 127 * value)]) if width == 1 else struct.pack("<h", int(32767 * value))
            file.writeframesraw(sample * channels)
    return path


class ComposeTest(ProgramTest):
    def compose(self, *arguments, out="song.wav", model=TINY, **options):
        """The song's bytes."""
        self.succeed("compose", "--model", model, "-o", self.folder / out, *arguments, **options)
        return (self.folder / out).read_bytes()

    def left(self):
        return sorted(path.name for path in self.folder.iterdir())


class Songs(ComposeTest):
    def test_the_same_seed_is_the_same_file_with_any_number_of_threads(self):
        song = self.compose(*SONG, "--threads", "1")
        self.assertEqual(song, self.compose(*SONG, "--threads", "2"))
        for window in ("4", "1000000000000", str(2**64 - 1)):
            self.assertEqual(song, self.compose(*SONG, "--threads", "2", "--window", window), window)
        self.assertEqual(self.left(), ["song.wav"])

    def test_a_seed_is_drawn_and_told(self):
        arguments = ("compose", "--model", TINY, "--prompt", "x", "--duration", "0.2", "--steps", "1", "--json", "-o")
        first = json.loads(self.succeed(*arguments, self.folder / "a.wav"))["songs"][0]
        again = json.loads(self.succeed(*arguments, self.folder / "b.wav", "--seed", first["seed"]))["songs"][0]
        self.assertEqual(again["seed"], first["seed"])
        self.assertEqual((self.folder / "a.wav").read_bytes(), (self.folder / "b.wav").read_bytes())
        self.assertEqual(first["seconds"], 0.2)

    def test_a_count_of_songs_has_the_seeds_that_follow(self):
        self.succeed("compose", "--model", TINY, *SONG, "--count", "2", "-o", self.folder / "song.wav")
        self.assertEqual(self.left(), ["song-1.wav", "song-2.wav"])
        second = self.compose(*SONG[:-1], "8", out="alone.wav")
        self.assertEqual((self.folder / "song-2.wav").read_bytes(), second)

    def test_every_format_is_written(self):
        for name, magic in (("a.wav", b"RIFF"), ("a.flac", b"fLaC"), ("a.mp3", b"\xff\xfb")):
            self.assertEqual(self.compose(*SONG, out=name)[: len(magic)], magic)
        whole = self.compose(*SONG, "--samples", "float", out="b.wav")
        self.assertGreater(len(whole), len((self.folder / "a.wav").read_bytes()))
        self.assertIn(b"calm piano", whole)
        self.assertIn(b"seed: 7", whole)

    def test_taps_hold_every_stage(self):
        self.compose(*SONG, "--taps", self.folder / "taps")
        names = {path.stem for path in (self.folder / "taps").iterdir()}
        for name in ("text_hidden", "condition", "context", "0.noise", "0.velocity_01", "0.latents", "0.raw"):
            self.assertIn(name, names)

    def test_given_noise_is_started_from(self):
        self.compose(*SONG, "--taps", self.folder / "taps")
        content = (self.folder / "taps/0.noise.safetensors").read_bytes().replace(b'"0.noise"', b'"noise"  ')
        (self.folder / "noise.safetensors").write_bytes(content)
        plain = self.compose(*SONG, "--samples", "float")
        given = self.compose(*SONG[:-2], "--samples", "float", "--noise", self.folder / "noise.safetensors")
        self.assertEqual(plain[-76000:], given[-76000:])


class Edits(ComposeTest):
    def test_repaint_cover_codes_and_reference(self):
        source = write_tone(self.folder / "source.wav")
        common = ("--prompt", "calm piano", "--steps", "2", "--seed", "7")
        songs = [self.compose(*common, *edit) for edit in (
            ("--task", "repaint", "--source", source, "--from", "0.2", "--to", "0.4"),
            ("--task", "repaint", "--source", source, "--from", "0.2", "--to", "0.6"),
            ("--task", "cover", "--source", source),
            ("--task", "cover", "--source", source, "--cover-strength", "0.5"),
            ("--task", "cover", "--source", source, "--cover-noise", "0.6"),
            ("--codes", "<|audio_code_1|><|audio_code_63999|>"),
            ("--codes", "1, 2"),
            ("--duration", "0.8", "--reference", source),
            ("--duration", "0.8"),
        )]  # fmt: skip
        self.assertEqual(len(set(songs)), len(songs))
        (self.folder / "codes.txt").write_text("1 2\n")
        self.assertEqual(self.compose(*common, "--codes", f"@{self.folder / 'codes.txt'}"), songs[6])

    def test_sources_of_any_kind_are_taken(self):
        for rate, channels, width in ((48000, 1, 2), (192000, 2, 2), (8000, 2, 1)):
            source = write_tone(self.folder / "source.wav", 0.4, rate, channels, width)
            song = self.compose("--prompt", "x", "--steps", "1", "--task", "cover", "--source", source)
            self.assertEqual(len(song) // 1000, 0.4 * 48000 * 4 // 1000)


class Planned(ComposeTest):
    def test_a_planner_writes_the_codes(self):
        arguments = ("--prompt", "calm piano", "--duration", "10", "--steps", "1", "--seed", "7")
        planned = self.compose(*arguments, "--planner", DATA / "ace-tiny-planner")
        self.assertEqual(planned, self.compose(*arguments, "--planner", DATA / "ace-tiny-planner"))
        self.assertNotEqual(planned, self.compose(*arguments))
        other = self.compose(*arguments, "--planner", DATA / "ace-tiny-planner", "--planner-temperature", "0.5")
        self.assertNotEqual(planned, other)
        self.assertEqual(len(planned) // 1000, 10 * 48000 * 4 // 1000)

    def test_a_song_of_several_is_planned_as_it_is_alone(self):
        arguments = ("--prompt", "calm piano", "--duration", "10", "--steps", "1", "--planner",
                     DATA / "ace-tiny-planner")  # fmt: skip
        self.succeed("compose", "--model", TINY, "-o", self.folder / "song.wav", *arguments, "--seed", "7", "--count",
                     "2")  # fmt: skip
        second = (self.folder / "song-2.wav").read_bytes()
        self.assertEqual(self.compose(*arguments, "--seed", "8"), second)


class Layouts(ComposeTest):
    def test_every_layout_makes_the_same_song(self):
        song = self.compose(*SONG)
        original, sharded = self.folder / "original", self.folder / "sharded"
        make_ace_variants.original(TINY, original)
        make_ace_variants.sharded(TINY, sharded)
        for model in (original, original / "acestep-v15-turbo", sharded):
            self.assertEqual(self.compose(*SONG, model=model), song, model)
        for model in (TINY, original, sharded):
            told = json.loads(self.succeed("inspect", "--json", model))
            self.assertTrue(told["loads"], told["problems"])
            self.assertIn("ACE-Step checkpoint", told["kind"])
        cut = original / "acestep-v15-turbo/silence_latent.pt"
        cut.write_bytes(cut.read_bytes()[:5000])
        self.assertIn("silence_latent.pt", program.assay("inspect", original).stdout.decode())
        self.refused("silence_latent.pt", *SONG, model=original)

    def refused(self, words, *arguments, model):
        done = program.assay("compose", "--model", model, "-o", self.folder / "none.wav", *arguments)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(words, done.stderr.decode())
        self.assertNotIn("none.wav", self.left())

    def test_a_nan_in_the_weights_is_named(self):
        model = self.folder / "model"
        make_ace_variants.sharded(TINY, model)
        shard = model / "transformer/diffusion_pytorch_model-00002-of-00002.safetensors"
        content = bytearray(shard.read_bytes())
        content[-2:] = b"\xc0\x7f"
        shard.write_bytes(content)
        self.refused("00002-of-00002", *SONG, model=model)


class BadInput(ComposeTest):
    def refused(self, words, *arguments, out="song.wav"):
        before = self.left()
        done = program.assay("compose", "--model", TINY, "-o", self.folder / out, *arguments)
        self.assertEqual(done.returncode, 2, (arguments, done.stderr))
        self.assertIn(words, done.stderr.decode(), arguments)
        self.assertEqual(self.left(), before, arguments)

    def test_values_out_of_range(self):
        common = ("--prompt", "x")
        for words, *arguments in (
            ("duration", *common, "--duration", "0"),
            ("duration", *common, "--duration", "-1"),
            ("duration", *common, "--duration", "601"),
            ("prompt", "--prompt", " "),
            ("63999", *common, "--codes", "1,64000"),
            ("--codes", *common, "--codes", "one"),
            ("steps", *common, "--steps", "0"),
            ("guidance", *common, "--guidance", "3"),
            ("--task", *common, "--task", "remix"),
            ("source", *common, "--task", "cover"),
            ("--count", *common, "--count", "0"),
            ("--count", *common, "--count", str(2**64 - 1)),
            ("--window", *common, "--window", "0"),
            ("shift", *common, "--shift", "1e-30"),
            ("key", *common, "--key", "H minor"),
            ("language", *common, "--language", "english"),
            ("time signature", *common, "--time-signature", "4/4"),
            ("bpm", *common, "--bpm", "10"),
            ("guidance from", *common, "--guidance-from", "0.5"),
            ("no repaint", *common, "--fade", "3"),
            ("no repaint", *common, "--injection", "0.1"),
            ("no planner", *common, "--planner-guidance", "3"),
            ("no planner", *common, "--planner-temperature", "0.5"),
            ("no planner", *common, "--planner-top-p", "0.5"),
            ("no planner", *common, "--metadata-only"),
            ("--planner-top-p: 0", *common, "--plan", "--planner-top-p", "0"),
            ("--planner-top-p: 1.5", *common, "--plan", "--planner-top-p", "1.5"),
            ("--planner-temperature: -1", *common, "--plan", "--planner-temperature", "-1"),
            ("--planner-temperature: \"nan\"", *common, "--plan", "--planner-temperature", "nan"),
            ("--planner-guidance: 101", *common, "--plan", "--planner-guidance", "101"),
            ("10 to 600 s", *common, "--planner", "absent", "--duration", "5"),
            ("10 to 600 s", *common, "--plan", "--duration", "5"),
            ("10 to 600 s", *common, "--plan", "--duration", "600.1"),
            ("10.1 s with a planner", *common, "--plan", "--duration", "10.1"),
            ("whole fifths", *common, "--planner", "absent", "--duration", "12.30"),
            ("--plan: beside --codes", *common, "--plan", "--codes", "1"),
            ("--plan: beside --source", *common, "--plan", "--source", "x.wav"),
            ("--plan: beside --task cover", *common, "--plan", "--task", "cover"),
            ("--plan: beside --task repaint", *common, "--plan", "--metadata-only", "--task", "repaint"),
            ("--task: 'remix'", *common, "--plan", "--task", "remix"),
            ("--planner: no config.json in absent", *common, "--planner", "absent"),
            ("--plan: no planner in", *common, "--plan"),
            ("after it", *common, "--codes", "@"),
            ("/proc/", *common, "--taps", "/proc"),
            ("--dcw", *common, "--dcw", "much"),
            ("--fade", *common, "--fade", "-1"),
            ("cover strength", *common, "--cover-strength", "0.5"),
        ):
            self.refused(words, *arguments)
        self.refused(".wav, .flac or .mp3", *common, out="song.ogg")
        self.refused("none", *common, out="none/song.wav")
        self.refused("at most 255", *common, out="x" * 260 + ".wav")

    def test_noise_of_another_shape_or_type(self):
        def noise(shape, dtype="F32"):
            header = json.dumps({"noise": {"dtype": dtype, "shape": shape, "data_offsets": [0, 4 * math.prod(shape)]}})
            header = header.ljust((len(header) + 7) // 8 * 8).encode()
            contents = len(header).to_bytes(8, "little") + header + bytes(4 * math.prod(shape))
            (self.folder / "noise.safetensors").write_bytes(contents)
            return ("--prompt", "x", "--duration", "0.4", "--noise", self.folder / "noise.safetensors")

        for shape in ([64, 10], [20, 32], [1, 10, 64], [640]):
            self.refused("noise", *noise(shape))
        self.refused("I32", *noise([10, 64], "I32"))
        self.refused("[10, 64]", *noise([9, 64]))

    def test_a_repaint_beyond_its_source(self):
        source = write_tone(self.folder / "source.wav", 0.4)
        repaint = ("--prompt", "x", "--task", "repaint", "--source", source, "--from", "0.2", "--to")
        self.refused("0.40 s", *repaint, "0.5")

    def test_texts_over_the_limit(self):
        self.refused("prompt", "--prompt", "verse " * 400)
        (self.folder / "long.txt").write_text("la di da\n" * 2000)
        self.refused("lyrics", "--prompt", "x", "--lyrics", self.folder / "long.txt")
        (self.folder / "latin.txt").write_bytes(b"caf\xe9")
        self.refused("lyrics", "--prompt", "x", "--lyrics", self.folder / "latin.txt")
        for planned in ((), ("--planner", DATA / "ace-tiny-planner"), ("--planner", DATA / "ace-tiny-planner", "--duration", "10")):
            self.refused("prompt: more than", "--prompt", "verse " * 400, *planned)
            self.refused("lyrics: more than", "--prompt", "x", "--lyrics", self.folder / "long.txt", *planned)
        self.refused("lyrics: no UTF-8", "--prompt", "x", "--lyrics", self.folder / "latin.txt", "--planner", DATA / "ace-tiny-planner")

    def test_sources_that_are_no_song(self):
        cover = ("--prompt", "x", "--task", "cover", "--source")
        whole = write_tone(self.folder / "whole.wav").read_bytes()
        (self.folder / "cut.wav").write_bytes(whole[: len(whole) // 2])
        (self.folder / "text.wav").write_text("la la la")
        write_tone(self.folder / "short.wav", 0.01)
        self.refused("truncated", *cover, self.folder / "cut.wav")
        self.refused("no sound file", *cover, self.folder / "text.wav")
        self.refused("0.01000 s", *cover, self.folder / "short.wav")
        self.refused("absent.wav", *cover, self.folder / "absent.wav")

    def test_a_full_disk_leaves_nothing(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (60000, 60000))

        for duration in ("0.2", "0.4"):
            done = subprocess.run(
                [PROGRAM, "compose", "--model", TINY, "--prompt", "x", "--steps", "1", "--duration", duration, "-o",
                 self.folder / "song.wav"], capture_output=True, preexec_fn=limit, timeout=program.TIMEOUT,
                env={**os.environ, "ASSAY_SELECTION": "off"})  # fmt: skip
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("File too large", done.stderr.decode())
            self.assertEqual(self.left(), [])


class Interrupt(ComposeTest):
    def test_it_stops_within_a_second_and_leaves_nothing(self):
        for stop in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            running = subprocess.Popen(
                [PROGRAM, "compose", "--model", TINY, "--prompt", "x", "--duration", "120", "--steps", "100", "-o",
                 self.folder / "song.flac"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env={**os.environ, "ASSAY_SELECTION": "off"})  # fmt: skip
            time.sleep(1.5)
            self.assertIsNone(running.poll(), "it was still at work")
            began = time.monotonic()
            running.send_signal(stop)
            running.communicate(timeout=program.TIMEOUT)
            # A second of its own; the machine may be busy.
            self.assertLess(time.monotonic() - began, 5)
            self.assertEqual(running.returncode, 130)
            self.assertEqual(self.left(), [])


if __name__ == "__main__":
    unittest.main()
