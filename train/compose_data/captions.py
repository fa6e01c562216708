"""Descriptions of scores in words, and the prompt texts that the product makes of them (music/text_format.cpp).

Training and test captions share the words for what is heard, not the sentences around them."""

import random

INSTRUCTIONS = {"text": "Fill the audio semantic mask based on the given conditions:",
                "cover": "Generate audio semantic tokens based on the given conditions:",
                "repaint": "Repaint the mask area based on the given conditions:"}  # fmt: skip
SHARP = ("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B")
FLAT = ("C", "Db", "D", "Eb", "E", "F", "Gb", "G", "Ab", "A", "Bb", "B")

MOODS = {  # by minor and by energy
    (False, True): ("happy", "cheerful", "joyful", "upbeat", "playful", "energetic"),
    (False, False): ("calm", "peaceful", "gentle", "warm", "relaxed", "hopeful"),
    (True, True): ("tense", "dramatic", "restless", "urgent", "fierce", "energetic"),
    (True, False): ("sad", "melancholic", "mournful", "gloomy", "wistful", "lonely"),
}
TEMPOS = ((78, ("slow", "very slow", "unhurried")), (112, ("moderate", "medium tempo", "walking pace")),
          (145, ("fast", "lively", "quick")), (999, ("very fast", "racing", "rapid")))  # fmt: skip
DENSITY = (("sparse", "simple", "minimal"), (), ("busy", "dense", "rich"))
BRIGHTNESS = (("mellow", "soft", "dark"), (), ("bright", "crisp", "brilliant"))
REGISTER = (("low", "deep"), (), ("high",))
LEADS = {"piano": ("piano melody", "piano"), "flute": ("flute melody", "flute"), "bell": ("bell melody", "bells"),
         "synth": ("synth lead", "lead synth"), "guitar": ("guitar melody", "plucked guitar")}  # fmt: skip
CHORDS = {"piano": ("piano chords", "piano"), "organ": ("organ chords", "organ"), "guitar": ("guitar chords", "guitar"),
          "strings": ("strings", "string pad", "string chords")}  # fmt: skip
BASSES = {"acoustic bass": ("acoustic bass", "bass"), "synth bass": ("synth bass", "bass")}
KITS = {"acoustic drums": ("acoustic drums", "drums", "a drum kit"), "electronic drums": ("electronic drums", "drums", "drum machine")}
WITHOUT = {"bass": ("no bass", "without bass"), "drums": ("no drums", "without drums", "drumless")}

# {a}: adjectives, {p}: parts, {k}: key, {t}: tempo in words, {n}: beats a minute, {m}: the measure.
SENTENCES = {
    "train": ("{a} music with {p}", "{p}, {a}", "a {a} piece for {p}", "{a}, {p}", "{a} instrumental, {p}, {t}",
              "{a} song in {k}, {p}", "{t} {a} tune in {k} with {p}", "{p} in {k}, {a}, {n} bpm", "{a} {m} with {p}",
              "{t}, {a}, {p}, {k}", "{n} bpm, {p}, {a}", "a {t} {m}: {p}", "{p}", "{a} music", "{k}, {n} bpm, {p}",
              "{a} and {t} track: {p}"),
    "test": ("{a} background music, {p}, {k}", "please make a {t} and {a} song with {p}", "{p} at {n} bpm, {a} mood",
             "something {a} in {k} for {p}", "{k} {a} melody at {n} bpm, with {p}", "a song that is {a}: {p}, {t}",
             "an instrumental track, {t}, with {p}, and a {a} feeling", "{p}; {a}; {k}"),
}  # fmt: skip
LANGUAGES = ("en", "en", "en", "unknown", "zh", "de", "es", "fr", "ja")


def tempo_words(bpm):
    return next(words for limit, words in TEMPOS if bpm < limit)


def adjectives(chance, score):
    energetic = score.bpm * (0.8, 1.0, 1.2)[score.density] > 110
    words = [chance.choice(MOODS[score.minor, energetic])]
    for choices, share in ((DENSITY[score.density], 0.4), (BRIGHTNESS[score.brightness], 0.6)):
        if choices and chance.random() < share:
            words.append(chance.choice(choices))
    chance.shuffle(words)
    return chance.choice((" ", ", ", " and ")).join(words)


def parts(chance, score):
    found = []
    if score.lead:
        register = REGISTER[score.register]
        word = chance.choice(LEADS[score.lead])
        found.append(f"{chance.choice(register)} {word}" if register and chance.random() < 0.5 else word)
    for name, words in ((score.chords, CHORDS), (score.bass, BASSES), (score.drums, KITS)):
        if name:
            found.append(chance.choice(words[name]))
    missing = [name for name, there in (("bass", score.bass), ("drums", score.drums)) if not there]
    found += [chance.choice(WITHOUT[name]) for name in missing if chance.random() < 0.35]
    chance.shuffle(found)
    if len(found) > 1 and chance.random() < 0.5:
        return ", ".join(found[:-1]) + " and " + found[-1]
    return ", ".join(found)


def key_of(chance, score):
    name = chance.choice((SHARP, FLAT))[score.tonic]
    return f"{name} {'minor' if score.minor else 'major'}"


def stranger(chance):
    """A word that means nothing here: a model that has met such looks past words that it doesn't know."""
    return "".join(chance.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(chance.randint(2, 8)))


def caption(chance, score, split, complete=False, strangers=True):
    """`complete`: every instrument is in it. `strangers`: training's may have words that mean nothing."""
    sentences = [s for s in SENTENCES[split] if not complete or "{p}" in s]
    measure = chance.choice(("waltz", "piece in 3/4")) if score.beats == 3 else chance.choice(("piece in 4/4", "beat"))
    text = chance.choice(sentences).format(a=adjectives(chance, score), p=parts(chance, score), k=key_of(chance, score),
                                           t=chance.choice(tempo_words(score.bpm)), n=score.bpm, m=measure)  # fmt: skip
    if split == "train" and strangers and chance.random() < 0.25:
        words = text.split(" ")
        for _ in range(chance.randint(1, 3)):
            words.insert(chance.randint(0, len(words)), stranger(chance))
        text = " ".join(words)
    return text[:1].upper() + text[1:] if chance.random() < 0.3 else text


def prompt(caption_text, bpm, beats, key, seconds, task="text"):
    """`bpm`, `beats` and `key` may be None."""
    return (f"# Instruction\n{INSTRUCTIONS[task]}\n\n# Caption\n{caption_text}\n\n# Metas\n- bpm: {bpm or 'N/A'}\n"
            f"- timesignature: {beats or 'N/A'}\n- keyscale: {key or 'N/A'}\n- duration: {int(seconds)} seconds\n"
            "<|endoftext|>\n")  # fmt: skip


def lyric(language, text):
    return f"# Languages\n{language}\n\n# Lyric\n{text}<|endoftext|>"


def lines(chance):
    """Lyrics of a training song: mostly none."""
    sung = chance.random()
    return "" if sung < 0.7 else "[Instrumental]" if sung < 0.9 else " ".join(stranger(chance) for _ in range(3))


def texts(chance, score, split, seconds, task="text", metas=0.7):
    """Prompt and lyrics as the product has them; each of the metas is given by a chance of `metas`."""

    def given(value):
        return value if chance.random() < metas else None

    words = caption(chance, score, split)
    prompt_text = prompt(words, given(score.bpm), given(score.beats), given(key_of(chance, score)), seconds, task)
    if split == "test":
        return prompt_text, lyric("en", "")
    sung = lines(chance)
    return prompt_text, lyric(chance.choice(LANGUAGES), sung)


def corpus(scores, seed):
    """Texts to train a tokenizer on."""
    for i, score in enumerate(scores):
        chance = random.Random(f"corpus {seed} {i}")
        yield from texts(chance, score, "train", chance.randint(4, 16), chance.choice(tuple(INSTRUCTIONS)))
