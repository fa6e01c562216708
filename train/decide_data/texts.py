"""How phrases become a state: greetings, filler, other topics, typing errors, mails, chats and lists."""

import re

from .dictionary import substitutes
from .grammar import Phrases
from .lexicon import SYNONYMS, THESAURUS

GREETING = Phrases("""
hi
hello
hello there
hi team
dear team
dear all
good morning
dear sir or madam
hey
to whom it may concern
dear {company}
!good day to you
!hiya
""")
CLOSING = Phrases("""
thanks
thank you
best regards
regards
kind regards, {person}
cheers
{person}
best, {person}
sent from my phone
thanks, {person}
yours, {person}
!bye for now
!warmly, {person}
""")
FILLER = Phrases("""
I am writing to you about the following.
I have been a customer since 20{d}{d}.
I tried to find this on your website.
my name is {person} and I live in {city}.
I hope you are doing well.
this is about order {order}.
as I said on the phone.
please see below.
my colleague {person} knows about it too.
it was raining when I came home from {city}.
we have {n} people in our team.
by the way, I like your new logo.
the office is on the second floor.
I also have a dog.
last year we went to {city}.
you can reach me in the afternoon.
I bought it as a present for {person}.
{company} recommended you to me.
that's all I know.
I hope this is the right address.
I read the instructions carefully.
I asked {person} first.
it was {day} when I noticed.
we have used {app} for {n} months.
let me explain.
!just so you know, I'm based near {city}.
!my sister {person} told me to write.
!this concerns file {order}.
!I took a photo of it as well.
""")
WORD = re.compile(r"[a-z]+")
TYPO_KEYS = "abcdefghijklmnopqrstuvwxyz"


def sentence(world, text):
    """Starts with a capital and ends with a mark, as most writers do."""
    text = text.strip()
    if text and world.chance(0.8):
        text = text[0].upper() + text[1:]
    if text and text[-1].isalnum() and world.chance(0.85):
        text += "."
    return text


def word_table():
    """word -> others that may stand for it."""
    table = {}
    for words, contrary in [*THESAURUS, *SYNONYMS]:
        for group in (words, contrary):
            single = [w for w in group if " " not in w]
            for word in single:
                table.setdefault(word, []).extend(w for w in single if w != word)
    for word in ("free fall fine right past dear back leave love like kind open order book issue short close mad hard cold fit well "
                 "for must may want try turn play show stage share mark paper note line key code light cross blue off over left "
                 "out good here gone current fair mean").split():
        table.pop(word, None)
    return {word: others for word, others in table.items() if others}


WORD_TABLE = word_table()


def varied(world, text, rate=0.15):
    """Now and then another word of the same meaning, by the thesaurus or the dictionary; training's alone."""
    if world.split != "train":
        return text

    def other(match):
        word = match[0]
        if word in WORD_TABLE:
            return world.pick(WORD_TABLE[word]) if world.chance(rate) else word
        return world.pick(substitutes()[word]) if word in substitutes() and world.chance(rate / 2) else word

    return WORD.sub(other, text)


def misspelt(world, text, errors):
    letters = list(text)
    for _ in range(errors):
        i = world.rng.randrange(max(1, len(letters) - 1)) if letters else 0
        if not letters or not letters[i].isalpha():
            continue
        action = world.rng.randrange(4)
        if action == 0:
            letters[i] = ""
        elif action == 1 and i + 1 < len(letters):
            letters[i], letters[i + 1] = letters[i + 1], letters[i]
        elif action == 2:
            letters[i] *= 2
        else:
            letters[i] = world.pick(TYPO_KEYS)
    return "".join(letters)


def worn(world, text, strength=1.0):
    """The text as hurried people type it."""
    if world.split != "train":
        strength *= 0.5
    if world.chance(0.12 * strength):
        text = misspelt(world, text, max(1, len(text) // 40))
    roll = world.rng.random()
    if roll < 0.10 * strength:
        text = text.lower()
    elif roll < 0.13 * strength:
        text = text.upper()
    elif roll < 0.19 * strength:
        text = text.replace(".", "").replace(",", "")
    elif roll < 0.22 * strength:
        text = text.replace(". ", "!! ")
    return text


def joined(world, phrases, fillers=0.5):
    """One text of phrases in their order, with filler between them."""
    parts = [sentence(world, p) for p in phrases]
    while world.chance(fillers) and len(parts) < 8:
        parts.insert(world.rng.randint(0, len(parts)), sentence(world, world.say(FILLER)))
        fillers *= 0.6
    glue = "\n" if world.chance(0.1) else " "
    text = glue.join(parts)
    if world.chance(0.22):
        text = sentence(world, world.say(GREETING)).rstrip(".") + world.pick([", ", ",\n", "! ", ",\n\n"]) + text
    if world.chance(0.22):
        text += world.pick([" ", "\n", "\n\n"]) + world.say(CLOSING)
    return worn(world, text)


SUBJECTS = ["subject", "title", "topic", "betreff"]
BODIES = ["body", "text", "message", "content", "description"]


def extras(world):
    """Fields beside the text that have no bearing on it."""
    makers = [
        lambda: ("id", world.rng.randint(1, 99999)), lambda: ("vip", world.chance(0.5)), lambda: ("from", world.slots.fresh("person")),
        lambda: ("channel", world.pick(["mail", "chat", "phone", "web"])), lambda: ("date", world.slots.fresh("date")),
        lambda: ("attachments", [world.slots.fresh("file")]), lambda: ("tags", world.sample(["new", "web", "en", "b2b", "mobile"], 2)),
        lambda: ("customer since", world.rng.randint(2009, 2026)), lambda: ("country", world.pick(["DE", "US", "FR", "UK", "ES"])),
        lambda: ("note", None), lambda: ("order", world.slots.fresh("order")),
    ]  # fmt: skip
    return dict(make() for make in world.sample(makers, world.rng.randint(0, 3)))


def wrapped(world, text, subject=None, plain=0.62):
    """`text` as a string, or as the body of an object or the one message of a list."""
    roll = world.rng.random()
    if roll < plain and not subject:
        return text
    if roll < plain + 0.28 or subject:
        fields = list(extras(world).items())
        mail = [(world.pick(SUBJECTS), subject)] if subject else []
        mail.append((world.pick(BODIES), text))
        fields[world.rng.randint(0, len(fields)) : 0] = mail
        return dict(fields)
    return [{"from": world.pick(["customer", "user", world.slots.fresh("person")]), world.pick(["text", "message"]): text}]


def conversation(world, turns):
    """`turns`: (who, text). As a list of objects, or as lines."""
    if world.chance(0.55):
        who, what = world.pick([("from", "text"), ("role", "content"), ("author", "message"), ("speaker", "text")])
        return [{who: name, what: text} for name, text in turns]
    glue = world.pick(["\n", "\n", " / "])
    return glue.join(f"{name}: {text}" for name, text in turns)
