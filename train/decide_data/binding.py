"""Who has what: facts that tie names to things, with words from the whole dictionary, for training and development alone.

Nothing but the text can tell; what is learnt is to find a name or a thing again and to read what stands beside it.
"""

import functools

from . import asking, texts
from .dictionary import dictionary, regular, withheld
from .grammar import Phrases, expand
from .vectors import vectors
from .vocab import DAYS

VERBS = """paint clean repair move carry sell buy order check count wash fold pack unpack open close lock fill empty inspect measure
photograph draw guard deliver collect return borrow rent sort label wrap polish replace install test design decorate cut hang
print sign copy translate write read review plan book cancel prepare cook bake serve taste plant water trim feed brush train
teach lead host organise announce record mix edit tune play sing watch find hide burn bury pull push lift weigh store load""".split()
PAST = {"sell": "sold", "buy": "bought", "cut": "cut", "hang": "hung", "write": "wrote", "read": "read", "lead": "led", "teach": "taught", "find": "found",
        "hide": "hid", "feed": "fed", "sing": "sang", "draw": "drew"}  # fmt: skip
DOUBLED = {"trim", "wrap", "cut", "plan", "label", "cancel", "travel"}


def listed(lines):
    return Phrases(lines, tested=False)


@functools.cache
def nouns(split):
    return [word for word in dictionary().things if withheld(word) == (split == "dev")]


@functools.cache
def contraries(split):
    """Usual adjectives with their contraries."""
    book, found = dictionary(), []
    for sense in book.senses:
        if sense.part == "a":
            found += [pair for pair in sense.antonyms.items() if min(map(book.known, pair)) > 4 and book.share(pair[0], sense) > 0.2
                      and withheld(min(pair)) == (split == "dev") and all(len(w) > 2 for w in pair)]  # fmt: skip
    return sorted(found)


@functools.cache
def occupations(split):
    book = dictionary()
    return sorted({w for s in book.senses if s.field == "noun.person" for w in s.words if w.isalpha() and w.islower() and book.known(w) > 3
                   and book.share(w, s) > 0.5 and w.endswith(("er", "or", "ist", "ian", "ant")) and withheld(w) == (split == "dev")})  # fmt: skip


def part_of(world):
    return "dev" if world.split == "dev" else "train"


def things(world, count):
    return world.sample(nouns(part_of(world)), count)


def continuous(verb):
    return verb + verb[-1] + "ing" if verb in DOUBLED and verb not in ("label", "cancel") else regular(verb, "ing")


def tasks(world, count):
    """(does it, doing it) of different tasks."""
    made = [(verb, f"the {noun}") for verb, noun in zip(world.sample(VERBS, count), things(world, count))]
    return [(f"{regular(verb, 's')} {noun}", f"{continuous(verb)} {noun}") for verb, noun in made]


def values(kind):
    """How the things of one kind are drawn: (world, count) -> list."""
    return {
        "person": lambda w, n: w.slots.several("person", n), "city": lambda w, n: w.slots.several("city", n),
        "thing": lambda w, n: things(w, n), "the thing": lambda w, n: [f"the {t}" for t in things(w, n)],
        "a thing": lambda w, n: [("an " if t[0] in "aeiou" else "a ") + t for t in things(w, n)],
        "adjective": lambda w, n: [pair[0] for pair in w.sample(contraries(part_of(w)), n)],
        "number": lambda w, n: [str(x) for x in w.sample(range(1, w.pick([10, 60, 400, 3000])), n)],
        "day": lambda w, n: w.sample(DAYS, n), "hour": lambda w, n: [f"{h}:{m}" for h, m in zip(w.sample(range(6, 23), n), w.sample("00 10 15 20 30 45 50".split(), n))],
        "room": lambda w, n: [f"room {x}" for x in w.sample(range(1, 60), n)], "letter": lambda w, n: w.sample("ABCDEFGHKLMN", n),
        "occupation": lambda w, n: w.sample(occupations(part_of(w)), n), "service": lambda w, n: w.slots.several("service", n),
        "colour": lambda w, n: w.sample("red green blue black white yellow brown grey pink purple orange silver golden".split(), n),
        "company": lambda w, n: w.slots.several("company", n), "does": tasks,
        "language": lambda w, n: w.sample("English German French Spanish Italian Turkish Polish Greek Arabic Hindi Korean Dutch Danish Swahili".split(), n),
    }[kind]  # fmt: skip


# (kind of a, kind of b, facts, questions for b, questions for a, yes or no). In tasks {b} is "does" and {c} is "doing".
RELATIONS = [
    ("person", "does", listed("{a} {b}\n{a} is {c}\n{c} is up to {a}\n{c}: {a}\n{a} volunteered for {c}\nwe asked {a} to see to {c}\n{a} has been chosen for {c}\n{c} was given to {a}\n{a} takes over {c}\nit is {a} who {b}\n{a} agreed to handle {c}\n{a} looks after {c}"),
     listed("what does {a} do?\nwhat is the (task|job|duty|role) of {a}?\nwhat is {a} (doing|in charge of|responsible for)?"),
     listed("who {b}?\nwho is {c}?\nwho takes care of {c}?\nwho has to do with {c}?\n{c} is whose (job|task|duty)?\nto whom was {c} given?\nwho handles {c}?"),
     listed("is {a} {c}?\nis {a} the one who {b}?\nis {c} the job of {a}?\ndoes {a} take care of {c}?")),
    ("person", "a thing", listed("{a} has {b}\n{a} bought {b}\n{a} owns {b}\n{a} brings {b}\n{b} belongs to {a}\n{a} found {b}\n{a} wants {b}\n{a} asked for {b}\n{a}: {b}\n{a} lost {b}\n{a} was given {b}\n{a} carries {b}\n{b} is for {a}\n{a} ordered {b}"),
     listed("what does {a} (have|own|hold)?\nwhat (is with|belongs to|goes to) {a}?\nwhat is the thing of {a}?\n{a} and what?\nwhich object is linked to {a}?"),
     listed("who has {b}?\nwhose is {b}?\nto whom does {b} belong?\nwho is named with {b}?\nwho do we ask about {b}?"),
     listed("does {a} have {b}?\nis {b} with {a}?\nis it {a} who has {b}?")),
    ("person", "city", listed("{a} lives in {b}\n{a} comes from {b}\n{a} moved to {b}\n{a} works in {b}\n{a} flew to {b}\n{b} is the home of {a}\n{a}: {b}\n{a} was born in {b}\n{a}, {b}\nin {b} we met {a}\n{a} writes from {b}\n{a} settled in {b}"),
     listed("where is {a}?\n(in|) which (place|city|town) (belongs to|goes with|is linked to) {a}?\nwhere (do we find|would you visit) {a}?\n{a}: where?"),
     listed("who is in {b}?\nwho (lives|works|stays) in {b}?\nwhose place is {b}?\n{b}: who?\nwhom do we meet in {b}?"),
     listed("is {a} in {b}?\ndoes {b} go with {a}?\nis {b} the place of {a}?")),
    ("the thing", "adjective", listed("{a} is {b}\n{a} looks {b}\n{a} was {b}\n{a} seems rather {b}\n{a} turned out to be {b}\n{a} has become {b}\nthey say {a} is {b}\n{a}: {b}\nI find {a} very {b}\n{a} remained {b}\none word for {a}: {b}"),
     listed("how is {a}?\nwhat is {a} like?\nwhich word describes {a}?\nwhat do they say of {a}?"),
     listed("(which|what) is {b}?\nwhich thing is {b}?\nwhat was called {b}?\nto what does {b} apply?"),
     listed("is {a} {b}?\nwas {a} said to be {b}?\ndoes {b} describe {a}?")),
    ("person", "occupation", listed("{a} is our {b}\n{a} works as {b}\n{a}, {b}\n{a} became {b}\nthe {b} is called {a}\n{b}: {a}\n{a}: {b}\n{a} was hired as {b}\nmeet {a}, the {b}\nfor years {a} was the {b} here"),
     listed("what is {a} by profession?\n(job|trade|position|title) of {a}\nas what does {a} work?\nwhat is {a}?"),
     listed("who is the {b}?\nwhat is the {b} called?\nname of the {b}\nwhich person is a {b}?"),
     listed("is {a} the {b}?\ndoes {a} work as {b}?\nis the {b} called {a}?")),
    ("the thing", "number", listed("{a} costs {b}\n{a}: {b}\n{a} weighs {b}\nthere are {b} of {a}\n{a} has number {b}\n{b} is the figure for {a}\n{a} - {b}\n{a} counts {b}\n{a} reached {b}\nfor {a} we noted {b}"),
     listed("what is the (number|figure|value) for {a}?\nhow (much|many) for {a}?\n{a}: which number?\nwhat was noted for {a}?"),
     listed("what (has|got) {b}?\nto what does {b} belong?\nwhich one (has|shows|stands at) {b}?"),
     listed("is {b} the (number|figure) for {a}?\ndoes {a} have {b}?")),
    ("the thing", "day", listed("{a} comes on {b}\n{b}: {a}\n{a} is due on {b}\nwe do {a} on {b}\n{a} was set for {b}\non {b} it is the turn of {a}\n{a} takes place on {b}\nwe expect {a} on {b}"),
     listed("when is {a} due?\non which day is {a}?\n(day|date) of {a}\nfor when is {a} planned?"),
     listed("what (happens|comes|is due) on {b}?\nwhat is planned for {b}?\n{b}: what?"),
     listed("is {a} on {b}?\ndoes {a} fall on {b}?\nis {b} the day of {a}?")),
    ("person", "hour", listed("{a} comes at {b}\n{b} {a}\n{a} has the slot at {b}\n{a} is booked for {b}\nwe see {a} at {b}\nat {b} there is {a}\n{a} called at {b}\n{a} left at {b}"),
     listed("when (is|was) {a} (here|booked|due)?\nat what time is {a} on the list?\ntime of {a}"),
     listed("who (comes|is booked|is due) at {b}?\nwho has the slot at {b}?\n{b}: who?"),
     listed("is {a} booked for {b}?\nis {b} the time of {a}?")),
    ("person", "room", listed("{a} is in {b}\n{a} sits in {b}\n{b}: {a}\n{b} belongs to {a}\n{a} was moved to {b}\n{b} is taken by {a}\nyou find {a} in {b}"),
     listed("where is {a}?\nwhich room (has|is for) {a}?\nroom of {a}"), listed("who is in {b}?\nwho has {b}?\n{b}: who?"),
     listed("is {a} in {b}?\ndoes {b} belong to {a}?")),
    ("the thing", "colour", listed("{a} is {b}\n{a} was painted {b}\n{a} in {b}\nwe chose {b} for {a}\n{a}: {b}\n{b} is the colour of {a}\n{a} comes in {b}"),
     listed("(what|which) colour (is|has) {a}?\ncolour of {a}"), listed("what is {b}?\nwhich thing is {b}?\nwhat has the colour {b}?"),
     listed("is {a} {b}?\nis {b} the colour of {a}?")),
    ("company", "the thing", listed("{a} makes {b}\n{a} sells {b}\n{b} comes from {a}\n{a} sent us {b}\n{b} was supplied by {a}\n{a}: {b}\nwe get {b} from {a}\n{a} recalled {b}"),
     listed("what does {a} (make|offer|supply)?\nwhat comes from {a}?"), listed("who (makes|supplies|offers) {b}?\nfrom whom is {b}?\nwhich company stands behind {b}?"),
     listed("is {b} from {a}?\ndoes {a} supply {b}?")),
    ("person", "language", listed("{a} speaks {b}\n{a} learns {b}\n{a} teaches {b}\n{b} is the mother tongue of {a}\n{a}: {b}\n{a} answered in {b}\n{a} translates from {b}"),
     listed("which language does {a} (speak|use|know)?\nlanguage of {a}"), listed("who (speaks|knows|uses) {b}?\nwhom do we ask for {b}?"),
     listed("does {a} know {b}?\nis {b} the language of {a}?")),
    ("letter", "the thing", listed("{a} = {b}\n{a}: {b}\nbox {a} holds {b}\n{b} is marked {a}\n{a} stands for {b}\nin {a} lies {b}\n{a}) {b}"),
     listed("what is {a}?\nwhat (is in|stands for|belongs to) {a}?"), listed("where is {b}?\nwhich letter (has|marks) {b}?"),
     listed("is {b} {a}?\ndoes {a} hold {b}?\ndo {a} and {b} go together?")),
]  # fmt: skip


def filled(world, phrases, a, b, c=""):
    text = expand(phrases.choose(world.rng, part_of(world)), world.rng)
    for slot, value in (("{a}", a), ("{b}", b), ("{c}", c)):
        text = text.replace(slot, value)
    return text


def question_text(world, text):
    text = text[0].upper() + text[1:] if world.chance(0.65) else text
    return text.rstrip("?.") if world.chance(0.1) else text


def stated(world, pairs, facts):
    """The facts as sentences, lines, one sentence, an object or a list of objects."""
    roll = world.rng.random()
    if roll < 0.16:
        return {a: b for a, b, _ in pairs}
    if roll < 0.24:
        keys = world.pick([("name", "value"), ("who", "what"), ("key", "entry"), ("item", "note"), ("a", "b")])
        return [dict(zip(keys, pair[:2])) for pair in pairs]
    lines = [filled(world, facts, *pair) for pair in pairs]
    if roll < 0.5:
        return world.pick([", ", "; ", "\n", " and ", ", while "]).join(lines)
    return texts.joined(world, lines, 0.2)


def word_pairs(world):
    """Words that mean nothing to each other, two by two: nothing but which stands beside which can be learnt from them."""
    count = world.pick([2, 3, 4, 5, 6])
    words = world.sample(vectors().words[:6000], 2 * count)
    found = list(zip(words[:count], words[count:]))
    link, glue = world.pick([": ", ": ", " = ", " - ", " is ", " and "]), world.pick(["; ", ", ", "\n", ". "])
    questions = []
    for _ in range(2 * count):
        pair = world.pick(found)
        side = world.rng.randrange(2)
        questions.append(asking.choice(world, pair[side], dict.fromkeys(p[1 - side] for p in found), pair[1 - side]))
    return glue.join(a + link + b for a, b in found), questions


def retold(world, pairs, facts, times):
    """The facts over and over, in another order and other words each time: what comes next can be read off what was said."""
    told = []
    for _ in range(times):
        plain = world.chance(0.6)
        told += [f"{a}: {b}" if plain else filled(world, facts, a, b, c) for a, b, c in world.sample(pairs, len(pairs))]
    return world.pick([". ", "; ", "\n", ", "]).join(told)


def recital(world):
    """As `binding`, of facts that are told more than once."""
    return binding(world, world.pick([2, 3, 3, 4, 4, 5]), world.pick([2, 2, 3]))


def binding(world, count=None, times=1):
    """Some facts of one relation, and questions from either side."""
    kind_a, kind_b, facts, ask_b, ask_a, ask = world.pick(RELATIONS)
    count = count or world.pick([1, 2, 2, 3, 3, 4, 5])
    people, found = values(kind_a)(world, count + 1), values(kind_b)(world, count + 1)
    pairs = [(a, *b) if isinstance(b, tuple) else (a, b, "") for a, b in zip(people, found)]
    stray = pairs.pop()
    state = stated(world, pairs, facts) if times == 1 else retold(world, pairs, facts, times)
    extra = [stray] if count == 1 or world.chance(0.25) else []
    questions = []
    for _ in range(world.pick([1, 2, 3]) if times == 1 else world.pick([3, 4, 5, 6])):
        a, b, c = world.pick(pairs)
        roll = world.rng.random()
        if world.chance(0.05):  # of somebody who is not in the text nothing is known
            names = list(dict.fromkeys(pair[1] for pair in (*pairs, stray)))
            text = question_text(world, filled(world, ask_b, *stray))
            questions.append(asking.choice(world, text, dict.fromkeys(names), {name: 1 / len(names) for name in names}))
            continue
        if roll < 0.4:
            names = [pair[0] for pair in (*pairs, *extra)]
            questions.append(asking.choice(world, question_text(world, filled(world, ask_a, a, b, c)), dict.fromkeys(names), a, 0.02))
        elif roll < 0.75:
            shown = 2 if c and world.chance(0.5) else 1
            names = [pair[shown] for pair in (*pairs, *extra)]
            questions.append(asking.choice(world, question_text(world, filled(world, ask_b, a, b, c)), dict.fromkeys(names), (a, b, c)[shown], 0.02))
        else:
            other = (a, b, c) if world.chance(0.5) else world.pick([p for p in (*pairs, stray) if p[0] != a])
            questions.append(asking.noul(question_text(world, filled(world, ask, a, *other[1:])), 0.97 if other[0] == a else 0.03))
    return state, questions


CONTRARY_FACTS = listed("the {a} is {b}\nthe {a} was {b} today\nI call the {a} {b}\nthe {a}, {b} as ever\nthe {a} stays {b}\nwe found the {a} {b}\n{b} is how the {a} looked")
CONTRARY_DENIED = listed("the {a} is not {b}\nthe {a} isn't {b} at all\nnothing {b} about the {a}\n{b}? no, not the {a}\nthe {a} is far from {b}\nthe {a} was never {b}")
CONTRARY_ASKS = listed("is the {a} {b}?\nis the {a} said to be {b}?\nwould {b} describe the {a}?\nis {b} the right word for the {a}?\nis it right that the {a} is {b}?")


def opposites(world):
    """A thing has a property: is it so, or the contrary?"""
    count = world.pick([1, 1, 2, 3])
    shown, pairs = things(world, count), world.sample(contraries(part_of(world)), count)
    lines = [filled(world, CONTRARY_FACTS, x, w) for x, (w, _) in zip(shown, pairs)]
    at = world.rng.randrange(count)
    word, contrary = pairs[at]
    denied, same = world.chance(0.25), world.chance(0.5)
    if denied:
        lines[at] = filled(world, CONTRARY_DENIED, shown[at], contrary)
    text = filled(world, CONTRARY_ASKS, shown[at], word if same else contrary)
    return texts.joined(world, lines, 0.15), [asking.noul(question_text(world, text), (0.92 if denied else 0.97) if same else 0.04)]


FINE = """running|up and running|healthy|ok|all good|no problems|works as usual|responding|available|ready|started|finished without errors|completed|
synchronised|stable|online|green|within limits|normal load|answers in {n} ms|{n} requests served|nothing to report|idle|backup taken|updated to version 2.{n}|
self-test passed|connected|all checks passed|listening on port {port}|deployment complete|{n} jobs done|up for {n} days|cache warm|certificate renewed|user {login} signed in|
working fine|back to normal|no incidents|heartbeat received|in good order|as expected|alive|reachable|load average 0.{n}|queue empty|session opened"""
FAULTY = """down|not responding|crashed|failed|error|out of memory|disk full|timeout|unreachable|connection refused|stopped|dead|hangs|red|overloaded|
exits with code {n}|cannot start|lost its connection|{n} errors in a minute|refuses connections|returns 500|corrupt|broken|offline|keeps restarting|segmentation fault|
does not answer|killed|no space left|unavailable|failing since {time}|throws exceptions|out of order|aborted|stuck|permission denied|fatal: cannot open the database|
self-test failed|lost {n} packets|queue overflow|replication broken|no heartbeat|gave up after {n} tries|panic|cannot be reached|malfunction|very slow|data loss|frozen solid"""
STATUSES = {name: Phrases([x.strip() for x in text.replace("\n", "").split("|")], tested=False) for name, text in (("fine", FINE), ("faulty", FAULTY))}
WHICH_FAULTY = listed("which (one|service|machine|part|system|component) (fails|has failed|is down|is broken|needs help|is in trouble|does not work|has a fault|causes trouble)?\nwhat (is broken|fails|is wrong|needs repair)?\nwhere is the (fault|trouble|problem|error|failure)?\n(find|name) the (culprit|faulty one|failing part).\nwho reports (trouble|an error|a failure)?\nwhich (line|entry) is (alarming|bad|an error)?\n(faulty|failing|broken) one\nwhat should we (repair|restart|look at) first?")
WHICH_FINE = listed("which (one|service|machine|part) (works|is fine|is up|is healthy|is all right)?\nwhat (works|is fine|is in order)?\nwhich one has no (fault|problem|trouble)?\nwho reports success?\n(healthy|working) one")
ANY_FAULT = listed("is (anything|something) (broken|wrong|down|faulty)?\ndoes (one|any) of them (fail|report a fault|need help)?\nare there (errors|problems|faults|failures)?\nis there bad news?\nmust we (act|worry|repair something)?")
ALL_FINE = listed("is (everything|all) (fine|in order|well|up|healthy)?\nare (all|all of them) (running|working|available)?\ncan we (relax|rest)?\nno (problems|faults|errors)?")


def statuses(world):
    """Named parts that are fine, but for one; or all broken, but for one."""
    count = world.rng.randint(2, 5)
    names = values(world.pick(["service", "service", "the thing", "room", "company", "person"]))(world, count)
    common, odd = ("fine", "faulty") if world.chance(0.75) else ("faulty", "fine")
    at = world.rng.randrange(count) if world.chance(0.75) else None
    kinds = [odd if i == at else common for i in range(count)]
    notes = []
    for kind in kinds:
        world.slots.kept.clear()
        notes.append(world.say(STATUSES[kind]))
    roll = world.rng.random()
    glue = world.pick([": ", " ", " - ", ": ", " is ", " reports: "])
    lines = [f"{name}{glue}{note}" for name, note in zip(names, notes)]
    if roll < 0.2:
        state = dict(zip(names, notes))
    elif roll < 0.35:
        state = [{"name": name, "status": note} for name, note in zip(names, notes)]
    elif roll < 0.65:
        state = "\n".join(f"{9 + i}:{world.rng.randint(10, 59)} {line}" if roll < 0.5 else line for i, line in enumerate(lines))
    else:
        state = texts.worn(world, world.pick([", ", "; ", ". "]).join(lines))
    questions = []
    if at is not None:
        phrases = WHICH_FAULTY if odd == "faulty" else WHICH_FINE
        questions.append(asking.choice(world, question_text(world, world.say(phrases)), dict.fromkeys(names), names[at], 0.02))
    fault = world.chance(0.5)
    holds = ("faulty" in kinds) == fault
    questions.append(asking.noul(question_text(world, world.say(ANY_FAULT if fault else ALL_FINE)), 0.96 if holds else 0.04))
    return state, questions
