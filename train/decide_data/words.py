"""Questions on English words and sentences from the dictionary: for training and development alone.

They are of the product's own shape and ask what messages ask in other words: which of these fits the text. Senses that
are often used come more often; a share of the words is development's (dictionary.withheld).
"""

import functools
import itertools
import re

from . import asking, texts
from .dictionary import FUNCTION_WORDS, dictionary, withheld
from .grammar import Phrases, untested
from .vectors import vectors

FIELD_NAMES = {
    "noun.act": ["action", "something done", "activity"], "noun.animal": ["animal", "creature", "animals", "wildlife"],
    "noun.artifact": ["object", "thing made by people", "man-made thing", "tools and objects"],
    "noun.attribute": ["quality", "property of something", "characteristic"], "noun.body": ["body", "part of the body", "anatomy"],
    "noun.cognition": ["knowledge", "thought", "ideas and thinking", "something in the mind"],
    "noun.communication": ["communication", "language", "something said or written", "words and messages"],
    "noun.event": ["event", "happening", "something that happens"], "noun.feeling": ["feeling", "emotion", "feelings"],
    "noun.food": ["food", "food and drink", "something to eat", "groceries"], "noun.group": ["group", "group of people or things"],
    "noun.location": ["place", "location", "region"], "noun.object": ["natural object", "landscape", "things in nature"],
    "noun.person": ["person", "people", "somebody", "kind of person"], "noun.phenomenon": ["phenomenon", "force of nature"],
    "noun.plant": ["plant", "plants", "botany", "something that grows"],
    "noun.possession": ["money", "possession", "finance", "what is owned or paid", "wealth"],
    "noun.process": ["process", "development"], "noun.quantity": ["amount", "quantity", "measure", "number or unit"],
    "noun.relation": ["relation", "connection between things"], "noun.shape": ["shape", "form"],
    "noun.state": ["state", "condition", "how something is"], "noun.substance": ["substance", "material", "stuff"],
    "noun.time": ["time", "period", "moment or period", "calendar"], "verb.body": ["body care", "bodily function", "health"],
    "verb.change": ["change", "becoming different"], "verb.cognition": ["thinking", "judging and knowing"],
    "verb.communication": ["talking", "speech", "saying or asking"], "verb.competition": ["fighting", "contest", "sport and war"],
    "verb.consumption": ["eating and drinking", "consuming"], "verb.contact": ["touching", "hitting or holding", "handling things"],
    "verb.creation": ["making", "creating", "production"], "verb.emotion": ["feelings", "emotion", "mood"],
    "verb.motion": ["movement", "motion", "travelling"], "verb.perception": ["seeing and hearing", "perception", "senses"],
    "verb.possession": ["buying and selling", "owning and giving", "getting or losing", "trade"],
    "verb.social": ["social life", "dealing with others", "politics and work"], "verb.weather": ["weather", "rain and wind"],
}  # fmt: skip


def listed(lines):
    return Phrases(lines, tested=False)


WHICH_WORD = listed("which word is (meant|defined|described|explained)?\nwhat is (this|it|described here)?\nwhich (term|word|expression) fits?\n(the word|term|name) for this\nof what is this the meaning?\nwhat do we call this?\n(find|pick|choose) the (right|matching) (word|term).\nwhich of the (words|options|terms) (matches|is closest)?\nwhat is the text about?\n(label|topic|subject)")
WHICH_MEANING = listed("what does {w} mean?\n(meaning|definition|sense) of {w}\nwhich (meaning|definition|explanation|description) (fits|is right for|belongs to) {w}?\nhow is {w} used here?\nwhat is (meant by|the sense of) {w}?\n(explain|define) {w}.\n{w}: which description is right?")
SAME_WORDS = listed("which (word|expression|one|option|) (is closest in meaning to|means the same as|is a synonym of|could stand for|comes nearest to) {w}?\n(synonym|another word) for {w}\n{w} means the same as\nanother way to say {w}\nwhat is nearest to {w}?\nsay {w} differently.")
CONTRARY_WORDS = listed("(which|what) is the (contrary|opposite|reverse) of {w}?\n(opposite|antonym|contrary) of {w}\nwhat is not {w} at all?\nwhich word (contradicts|is opposed to) {w}?")
ARE_SAME = listed("(do|does) {w} and {o} mean (the same|about the same|nearly the same)?\nis {w} another word for {o}?\nare {w} and {o} (synonyms|alike in meaning)?\ncan {o} replace {w}?\n{w}: the same as {o}?")
ARE_CONTRARY = listed("(is|are) {w} (and {o} opposites|the opposite of {o}|contrary to {o})?\ndo {w} and {o} exclude each other?\ndoes {w} contradict {o}?\nare {w} and {o} antonyms?")
IS_KIND = listed("is (this|it|the thing) (a kind of|a sort of|a type of|an example of) {o}?\ndoes (this|it) (belong to|come under|fall under) {o}?\nis this (about|a case of) {o}?\ndoes the text (speak of|concern|mention|deal with) {o}?\n{o}?\ncould we file this under {o}?\nhas this to do with {o}?\ncategory: {o}?")
WHICH_KIND = listed("what (kind|sort|type) of thing is (this|it|{w})?\nwhich (category|class|group|label) (fits|is right|applies)?\n(category|class|kind|type)\nwhere does (this|{w}|it) belong?\nwhich of these is {w}?\nclassify (this|it|{w}).\n{w} is a kind of\nunder which (heading|label) does (this|it) fall?")
WHICH_FIELD = listed("what is (this|the text|it) about?\n(topic|field|subject|area|theme)\nto which (field|area|subject|domain) does (this|the text) belong?\nwhich (topic|subject|theme) (fits|fits best|is right)?\nwho deals with this?\nassign the text to a (field|subject|category).\n(sort|file) this under")
MISSING = listed("which word is missing?\nwhat (fits|belongs) in the gap?\nfill the (gap|blank).\nwhich word (completes|finishes) the sentence?\n(missing word|the gap)")
WHICH_SENTENCE = listed("which (sentence|text|example|line) (is about|has to do with|shows|speaks of) {w}?\nwhere is {w} (meant|shown|described)?\n(find|choose) the (sentence|text) on {w}.\nan example of {w}")
USES = listed("does the (text|sentence) (contain|use) (the word|) {o}?\nis {o} (mentioned|named|in the text)?\ndoes {o} (come up|occur|appear)?")
GOOD_OR_BAD = listed("is (this|it|the word|the text) positive or negative?\n(sentiment|tone|feeling|attitude|polarity)\n(what|which) (impression|sentiment|mood) does (this|it) (give|convey)?\nhow does (this|it) sound?\ngood or bad?\nhow does the writer feel about it?\nwhat is the (tone|mood|sentiment|attitude)?")
IS_GOOD = listed("is (this|it) (something good|positive|pleasant|nice)?\ndoes (this|it) sound (good|pleasant|positive|friendly)?\nis the (speaker|writer|author) (happy|pleased|satisfied|content)?\n(positive|good news)?\nis it praise?\nwould one like this?")
IS_BAD = listed("is (this|it) (something bad|negative|unpleasant|harmful)?\ndoes (this|it) sound (bad|negative|unfriendly|unpleasant)?\nis the (speaker|writer|author) (unhappy|displeased|dissatisfied|upset)?\n(negative|bad news)?\nis it (criticism|a complaint)?\nis something wrong?")
HOW_GOOD = listed("how (positive|good|pleasant) is (this|it)?\n(rate|judge) the (sentiment|tone|feeling).\n(sentiment|rating|tone|mood)\nhow (happy|satisfied|pleased) does (this|it) sound?\nhow well is it liked?")
POLES = [("positive", "negative"), ("good", "bad"), ("pleasant", "unpleasant"), ("favourable", "unfavourable"), ("praise", "blame"), ("approval", "disapproval"),
         ("happy", "unhappy"), ("pleased", "displeased"), ("likes it", "dislikes it"), ("kind", "unkind"), ("friendly", "hostile"), ("content", "discontent"),
         ("for", "against"), ("welcome", "unwelcome"), ("satisfied", "dissatisfied"), ("fortunate", "unfortunate"), ("good news", "bad news")]  # fmt: skip
SCALES = [["very negative", "negative", "neutral", "positive", "very positive"], ["terrible", "bad", "so-so", "good", "excellent"], ["1", "2", "3", "4", "5"],
          ["awful", "poor", "fair", "nice", "superb"], ["hate", "dislike", "indifference", "liking", "love"], ["bad", "neither", "good"],
          ["very unhappy", "unhappy", "indifferent", "happy", "very happy"], ["strong disapproval", "disapproval", "no opinion", "approval", "strong approval"],
          ["disastrous", "unpleasant", "ordinary", "pleasant", "wonderful"], ["1 star", "2 stars", "3 stars", "4 stars", "5 stars"]]  # fmt: skip
SAYINGS = ["{}", "{}", "word: {}", "it was {}", "it is about {}", "they spoke of {}", "note: {}", "we saw {}", "{}, that is what I mean", "somebody mentioned {}", "this concerns {}"]


def split_of(world):
    return "dev" if world.split == "dev" else "train"


@functools.cache
def usual(split):
    """Senses with a usual word, and their cumulative weights: by use, damped, for each part of speech alike."""
    book = dictionary()
    senses, weights = [], []
    for sense in book.senses:
        known = max(book.known(word) for word in sense.words)
        if (known < 2 and not sum(sense.counts)) or withheld(sense.words[0]) != (split == "dev") or len(sense.definition) < 8:
            continue
        senses.append(sense)
        weights.append(1 + min(known, 400) ** 0.5 / 2 + min(sum(sense.counts), 400) ** 0.5)
    return senses, list(itertools.accumulate(weights))


@functools.cache
def usual_where(split, kind):
    """The usual senses that have examples, hypernyms, antonyms, domains or synonyms."""
    senses, total = usual(split)
    weights = [b - a for a, b in zip([0, *total], total)]
    has = {"examples": lambda s: s.examples, "hypernyms": lambda s: s.hypernyms, "antonyms": lambda s: s.antonyms, "domains": lambda s: s.domains,
           "synonyms": lambda s: len(s.words) > 1 or s.similar, "fields": lambda s: s.field in FIELD_NAMES}[kind]  # fmt: skip
    kept = [(s, w) for s, w in zip(senses, weights) if has(s)]
    return [s for s, _ in kept], list(itertools.accumulate(w for _, w in kept))


def drawn(world, kind=None, count=None):
    senses, total = usual_where(split_of(world), kind) if kind else usual(split_of(world))
    found = world.rng.choices(senses, cum_weights=total, k=count or 1)
    return found if count else found[0]


def word_of(world, sense):
    """One of the words of a sense, usual ones first."""
    book = dictionary()
    return world.rng.choices(sense.words, [1 + book.known(w) + 3 * c for w, c in zip(sense.words, sense.counts)])[0]


def definition_of(world, sense):
    """A definition as people write one: often without what stands in brackets or after a semicolon."""
    text = sense.definition
    if world.chance(0.6):
        text = re.sub(r"\s*\([^()]*\)\s*", " ", text).strip() or text
    if ";" in text and world.chance(0.7):
        text = text.split(";")[0].strip()
    return text[:160].rsplit(" ", 1)[0] if len(text) > 160 else text


def neighbours(world, sense, count):
    """Other senses: some of the same field or the same kind, the rest of the same part of speech."""
    book, found = dictionary(), []
    near = [s for above in sense.hypernyms for s in book.senses[above].narrower if s is not sense]
    if near and world.chance(0.4):
        found += world.sample(near, world.rng.randint(1, count))
    while len(found) < count:
        other = drawn(world)
        if other.part == sense.part or world.chance(0.15):
            found.append(other)
    taken = set(sense.words)
    return [s for s in found[:count] if not taken & set(s.words)]


def count_of_wrong(world):
    return world.pick([1, 2, 2, 3, 3, 4, 5, 7])


def asked(world, phrases, **values):
    world.slots.kept.update({(name, False): value for name, value in values.items()})
    text = world.say(phrases)
    roll = world.rng.random()
    if roll < 0.6:
        return text[0].upper() + text[1:]
    return text.rstrip("?.") if roll > 0.9 else text


def options_of(names):
    return {name: None for name in names}


def said(world, text):
    """A few words as a state."""
    text = world.pick(SAYINGS).format(text)
    if world.chance(0.12):
        text = texts.joined(world, [text], 0.6)
    return texts.wrapped(world, texts.worn(world, text), plain=0.93)


def a_choice(world, text, right, wrong, other=0.02):
    return asking.choice(world, text, options_of(dict.fromkeys([right, *wrong])), right, other)


def defining(world):
    """A definition, and the word for it among others, or the other way round."""
    sense = drawn(world)
    others = neighbours(world, sense, count_of_wrong(world))
    word = word_of(world, sense)
    roll = world.rng.random()
    if roll < 0.45:
        wrong = [word_of(world, s) for s in others]
        text = asked(world, WHICH_WORD)
        if world.chance(0.3) and sense.examples:  # options with descriptions
            options = {word: definition_of(world, sense), **{w: definition_of(world, s) for w, s in zip(wrong, others) if w != word}}
            return said(world, world.pick(sense.examples)), [asking.choice(world, text, options, word, 0.04)]
        return said(world, definition_of(world, sense)), [a_choice(world, text, word, wrong)]
    if roll < 0.8:
        text = asked(world, WHICH_MEANING, w=word)
        state = world.pick(["", word, *(sense.examples[:1])])
        return state, [a_choice(world, text, definition_of(world, sense), [definition_of(world, s) for s in others], 0.03)]
    text = asked(world, IS_KIND, o=word)
    yes = world.chance(0.5)
    about = sense if yes or not others else others[0]
    return said(world, definition_of(world, about)), [asking.noul(text, 0.97 if about is sense else 0.04)]


def fitting(world):
    """Texts and words of their meaning: is it about this? With a synonym, with what it is a kind of, with a description."""
    sense = drawn(world, "examples")
    book, example = dictionary(), world.pick(sense.examples)
    others = neighbours(world, sense, count_of_wrong(world))
    hidden = [w for w in sense.words if w not in example]
    above = [book.senses[n] for n in sense.hypernyms]
    names = hidden or [word_of(world, s) for s in above] or sense.words
    name = world.pick(names)
    roll = world.rng.random()
    if roll < 0.3:
        return said(world, example), [a_choice(world, asked(world, WHICH_WORD), name, [word_of(world, s) for s in others], 0.05)]
    if roll < 0.45:
        options = [definition_of(world, s) for s in (sense, *others)]
        return said(world, example), [a_choice(world, asked(world, WHICH_WORD), options[0], options[1:], 0.05)]
    if roll < 0.7:
        yes = world.chance(0.5) or not others
        subject = name if yes else word_of(world, others[0])
        criteria = {"true": definition_of(world, sense if yes else others[0])} if world.chance(0.4) else None
        question = asking.noul(asked(world, IS_KIND, o=subject), 0.95 if yes else 0.05, criteria)
        return said(world, example), [question]
    shown = [(s, world.pick(s.examples)) for s in (sense, *others) if s.examples]
    about = world.pick([name, definition_of(world, sense)])
    if roll < 0.85 or len(shown) < 3:
        options = {text: None for _, text in shown}
        if len(options) < 2:
            options["none"] = None
        return world.pick(["", about]), [asking.choice(world, asked(world, WHICH_SENTENCE, w=about), options, shown[0][1], 0.04)]
    lines = shown[:]
    world.rng.shuffle(lines)
    letters = world.pick(["abcdefgh", "12345678", "ABCDEFGH"])
    state = "\n".join(f"{letters[i]}: {text}" for i, (_, text) in enumerate(lines))
    right = letters[next(i for i, line in enumerate(lines) if line[0] is sense)]
    return state, [asking.choice(world, asked(world, WHICH_SENTENCE, w=about), options_of(letters[: len(lines)]), right, 0.04)]


def relations(world):
    """Same and contrary."""
    book = dictionary()
    kind = world.pick(["synonyms", "synonyms", "antonyms"])
    sense = drawn(world, kind)
    if kind == "antonyms":
        word, contrary = world.pick(list(sense.antonyms.items()))
        wrong = [word_of(world, s) for s in neighbours(world, sense, count_of_wrong(world))] + [w for w in sense.words if w != word][:1]
        if world.chance(0.5):
            return world.pick(["", word]), [a_choice(world, asked(world, CONTRARY_WORDS, w=word), contrary, wrong, 0.03)]
        yes = world.chance(0.5) or not wrong
        return "", [asking.noul(asked(world, ARE_CONTRARY, w=word, o=contrary if yes else wrong[0]), 0.96 if yes else 0.05)]
    word = word_of(world, sense)
    same = [w for w in sense.words if w != word] or [w for n in sense.similar for w in book.senses[n].words]
    right = world.pick(same)
    contrary = [c for w, c in sense.antonyms.items()][:1]
    wrong = [word_of(world, s) for s in neighbours(world, sense, count_of_wrong(world))] + contrary
    if world.chance(0.6):
        return world.pick(["", word, f"word: {word}"]), [a_choice(world, asked(world, SAME_WORDS, w=word), right, wrong, 0.04)]
    yes = world.chance(0.5) or not wrong
    return "", [asking.noul(asked(world, ARE_SAME, w=word, o=right if yes else wrong[-1]), 0.95 if yes else 0.05)]


def chain(sense):
    """What a sense is a kind of, nearest first; the last, which all things are, are left out."""
    book, found = dictionary(), []
    while sense.hypernyms and len(found) < 6:
        sense = book.senses[sense.hypernyms[0]]
        if sense.field == "noun.Tops" or sense in found:
            break
        found.append(sense)
    return found


def kinds(world):
    """What something is a kind of."""
    sense = drawn(world, "hypernyms")
    above = chain(sense)
    if not above:
        return subject_fields(world)
    kind = world.pick(above[:4])
    word = word_of(world, sense)
    own = {id(s) for s in (sense, *above)}
    wrong = [c[0] for c in (chain(s)[:3] or [s] for s in drawn(world, count=count_of_wrong(world))) if id(c[0]) not in own]
    state = world.pick([word, word, definition_of(world, sense), *sense.examples[:1], ""])
    if world.chance(0.6):
        shown = f"a {word}" if sense.part == "n" and world.chance(0.3) else word
        text = asked(world, WHICH_KIND, w=shown if not state or world.chance(0.5) else "it")
        if not state and shown not in text:
            state = word
        return state, [a_choice(world, text, word_of(world, kind), [word_of(world, s) for s in wrong] or ["none"], 0.04)]
    yes = world.chance(0.5) or not wrong
    question = asking.noul(asked(world, IS_KIND, o=word_of(world, kind if yes else wrong[0])), 0.96 if yes else 0.04)
    return said(world, state or word), [question]


def subject_fields(world):
    """To which field words, a definition or an example belong."""
    sense = drawn(world, "fields")
    same = [s for s in drawn(world, "fields", 60) if s.field == sense.field][:4]
    roll = world.rng.random()
    if roll < 0.4 and same:
        state = ", ".join(word_of(world, s) for s in [sense, *same])
    else:
        state = world.pick([definition_of(world, sense), *sense.examples[:1], f"{word_of(world, sense)}: {definition_of(world, sense)}"])
    part = sense.field[:4]
    wrong = world.sample([f for f in FIELD_NAMES if f != sense.field and f[:4] == part], count_of_wrong(world))
    names = [world.pick(untested(FIELD_NAMES[f])) for f in (sense.field, *wrong)]
    if world.chance(0.25):
        yes = world.chance(0.5)
        return said(world, state), [asking.noul(asked(world, IS_KIND, o=names[0 if yes else 1]), 0.92 if yes else 0.08)]
    return said(world, state), [a_choice(world, asked(world, WHICH_FIELD), names[0], names[1:], 0.08)]


def domains(world):
    """The trade or science that uses a word: law, medicine, computing."""
    sense, book = drawn(world, "domains"), dictionary()
    own = book.senses[sense.domains[0]]
    others = {}
    for s in drawn(world, "domains", 12):
        domain = book.senses[s.domains[0]]
        if domain is not own:
            others.setdefault(domain.words[0], domain)
    wrong = list(others.values())[: count_of_wrong(world)]
    state = world.pick([definition_of(world, sense), word_of(world, sense), f"{word_of(world, sense)}: {definition_of(world, sense)}", *sense.examples[:2]])
    name = word_of(world, own)
    if world.chance(0.25):
        yes = world.chance(0.5) or not wrong
        return said(world, state), [asking.noul(asked(world, IS_KIND, o=name if yes else word_of(world, wrong[0])), 0.93 if yes else 0.06)]
    if world.chance(0.25):
        options = {word_of(world, d): definition_of(world, d) for d in (own, *wrong)}
        return said(world, state), [asking.choice(world, asked(world, WHICH_FIELD), options, next(iter(options)), 0.06)]
    return said(world, state), [a_choice(world, asked(world, WHICH_FIELD), name, [word_of(world, d) for d in wrong] or ["none"], 0.06)]


def gaps(world):
    """An example with its word left out."""
    sense = drawn(world, "examples")
    found = [(e, w) for e in sense.examples for w in sense.words if re.search(rf"\b{re.escape(w)}\b", e)]
    if not found:
        return fitting(world)
    example, word = world.pick(found)
    state = re.sub(rf"\b{re.escape(word)}\b", world.pick(["___", "...", "[?]", "(gap)"]), example, count=1)
    wrong = [word_of(world, s) for s in neighbours(world, sense, count_of_wrong(world))]
    return state, [a_choice(world, asked(world, MISSING), word, wrong, 0.05)]


@functools.cache
def listed_words(split):
    """Places of a split's words in the table of neighbours, and their cumulative weights: usual ones more often."""
    table = vectors()
    kept = [i for i, word in enumerate(table.listed) if withheld(table.words[word]) == (split == "dev")]
    return kept, list(itertools.accumulate(1 / (i + 500) ** 0.5 for i in kept))


def neighbouring(world):
    """Words that are used alike: what a text is about need not be its synonym."""
    table, (places, total) = vectors(), listed_words(split_of(world))
    index, *others = world.rng.choices(places, cum_weights=total, k=1 + count_of_wrong(world))
    word, near = table.words[table.listed[index]], table.neighbours(index)
    wrong = [w for w in (table.words[table.listed[i]] for i in others) if w != word and w not in near]
    shown = world.sample(near[:6], world.pick([1, 2, 2, 3, 4]))
    if world.chance(0.3):  # the other way round: one word, and groups of words
        groups = [", ".join(world.sample(table.neighbours(i)[:6], len(shown))) for i in others]
        return said(world, word), [a_choice(world, asked(world, WHICH_WORD), ", ".join(shown), groups, 0.08)]
    state = said(world, world.pick([", ", " ", " and "]).join(shown))
    if world.chance(0.3):
        yes = world.chance(0.5) or not wrong
        return state, [asking.noul(asked(world, IS_KIND, o=word if yes else wrong[0]), 0.93 if yes else 0.05)]
    return state, [a_choice(world, asked(world, world.pick([WHICH_WORD, WHICH_FIELD])), word, wrong or ["none"], 0.08)]


@functools.cache
def valued(split):
    """(good, bad) words, and examples whose words are all good or all bad."""
    book = dictionary()
    values = {w: v for w, v in book.valence.items() if abs(v) >= 2 and withheld(w) == (split == "dev")}
    words = [w for w, v in values.items() if v > 0], [w for w, v in values.items() if v < 0]
    sentences = [], []
    for sense in book.senses:
        for example in sense.examples:
            found = [book.valence[w] for w in re.findall(r"[a-z]+", example.lower()) if w in book.valence]
            negated = re.search(r"\b(not|no|never|nobody|without|n't|un\w+)\b|n't", example)
            if found and not negated and abs(sum(found)) >= 3 and (min(found) > 0 or max(found) < 0) and len(example.split()) > 2:
                sentences[0 if found[0] > 0 else 1].append((example, sum(found) / len(found)))
    return words, sentences


def valence(world):
    """Good and bad words and sentences."""
    words, sentences = valued(split_of(world))
    side = world.rng.randrange(2)
    if world.chance(0.45):
        shown = world.sample(words[side], world.pick([1, 1, 2, 3]))
        state, value = said(world, ", ".join(shown)), sum(dictionary().valence[w] for w in shown) / len(shown)
    else:
        text, value = world.pick(sentences[side])
        state = texts.wrapped(world, texts.worn(world, texts.sentence(world, text)), plain=0.9)
    roll = world.rng.random()
    if roll < 0.45:
        poles = world.pick(untested(POLES))
        extra = [world.pick(["neutral", "neither", "mixed"])] if world.chance(0.25) else []
        return state, [a_choice(world, asked(world, GOOD_OR_BAD), poles[side], [poles[1 - side], *extra], 0.06)]
    if roll < 0.75:
        good = world.chance(0.5)
        return state, [asking.noul(asked(world, IS_GOOD if good else IS_BAD), 0.94 if good == (side == 0) else 0.06)]
    levels = world.pick(untested(SCALES))
    place = 0.5 + max(-0.5, min(0.5, value / 8))
    return state, [asking.score(asked(world, HOW_GOOD), levels, asking.spread(place, len(levels)))]


def mentioned(world):
    """Does the word stand in the sentence: to be read letter by letter."""
    sense = drawn(world, "examples")
    example = world.pick(sense.examples)
    own = [w for w in re.findall(r"[a-z]{3,}", example) if w not in FUNCTION_WORDS]
    if len(own) < 2:
        return gaps(world)
    others = [w for w in (word_of(world, s) for s in drawn(world, count=4)) if w not in example]
    if world.chance(0.5) or not others:
        yes = world.chance(0.5) or not others
        return example, [asking.noul(asked(world, USES, o=world.pick(own) if yes else others[0]), 0.97 if yes else 0.03)]
    return example, [a_choice(world, world.pick(["Which word is in the text?", "which of these words appears?", "What is mentioned?"]), world.pick(own), others, 0.01)]
