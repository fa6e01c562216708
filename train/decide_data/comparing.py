"""Rules with a number and comparisons in words put together from parts, for training and development alone.

What is measured, its unit, how a limit is worded, how the fact and the question are worded are drawn apart from each other,
so that no wording gives away the answer: only the numbers with the direction of the limit do.
"""

from . import asking, texts
from .grammar import Phrases, expand, untested
from .numbers_and_rules import HOLDS, LEAST, LESS, MORE, MOST, near
from .vocab import DAYS, MONTHS


def listed(lines):
    return Phrases(lines, tested=False)


# What is measured: its names, units, how it stands with a number, and the smallest and largest limit.
MEASURES = [
    (["weight", "load", "mass"], ["kg", "pounds", "tons", "grams"], ["weighs {n}", "comes to {n}", "is {n} heavy", "tips the scales at {n}"], (2, 90)),
    (["price", "cost", "amount", "bill", "total", "fee", "expense"], ["dollars", "euros", "pounds", "EUR", "francs"], ["costs {n}", "comes to {n}", "amounts to {n}", "was {n}", "is {n}", "adds up to {n}"], (2, 900)),
    (["speed", "pace"], ["km/h", "mph", "knots"], ["runs at {n}", "was measured at {n}", "does {n}", "moved at {n}"], (5, 200)),
    (["age"], ["years", "years of age", "months"], ["is {n} old", "has reached {n}", "turned {n}", "is {n}"], (1, 80)),
    (["temperature", "heat"], ["degrees", "degrees Celsius", "C"], ["has {n}", "reads {n}", "stands at {n}", "went to {n}"], (1, 120)),
    (["length", "distance", "way"], ["metres", "km", "miles", "feet", "cm"], ["is {n} long", "measures {n}", "runs for {n}", "comes to {n}"], (1, 400)),
    (["height"], ["metres", "cm", "feet"], ["is {n} high", "rises to {n}", "measures {n}", "is {n} tall"], (1, 200)),
    (["time", "duration", "wait", "delay", "period"], ["minutes", "hours", "days", "weeks", "months", "seconds"], ["took {n}", "lasted {n}", "was {n}", "has run for {n}", "needed {n}"], (1, 120)),
    (["number of people", "attendance", "group", "crew"], ["people", "persons", "guests", "visitors", "members", "children"], ["numbers {n}", "counts {n}", "is made up of {n}", "has {n}"], (2, 300)),
    (["stock", "supply", "store"], ["pieces", "units", "boxes", "bottles", "items"], ["is down to {n}", "holds {n}", "has {n} left", "counts {n}"], (1, 400)),
    (["score", "result", "grade", "rating"], ["points", "percent", "marks"], ["reached {n}", "got {n}", "ended with {n}", "has {n}"], (1, 100)),
    (["file", "attachment", "upload", "memory use"], ["MB", "GB", "kB"], ["has {n}", "takes {n}", "is {n} large", "needs {n}"], (1, 500)),
    (["pressure", "load", "voltage", "power"], ["bar", "percent", "volts", "watts"], ["is at {n}", "shows {n}", "climbed to {n}", "reads {n}"], (1, 240)),
    (["order", "purchase", "basket"], ["euros", "dollars", "items", "pieces"], ["is for {n}", "has {n}", "comes to {n}", "contains {n}"], (1, 300)),
    (["experience", "service", "membership"], ["years", "months"], ["goes back {n}", "has lasted {n}", "is {n}", "covers {n}"], (1, 30)),
    (["text", "report", "letter", "message"], ["words", "pages", "lines", "characters"], ["has {n}", "runs to {n}", "is {n} long", "fills {n}"], (1, 500)),
    (["noise", "sound"], ["decibels", "dB"], ["reaches {n}", "is at {n}", "was measured at {n}"], (10, 120)),
    (["error count", "number of failures", "error rate"], ["errors", "failures", "percent"], ["is {n}", "reached {n}", "stands at {n}"], (1, 90)),
]  # fmt: skip
LIMITS = {
    MOST: listed("the {m} must not exceed {n}\nthe {m} may be {n} at most\nno more than {n}\nat most {n}\nup to {n} is allowed\nmaximum {m}: {n}\nthe {m} is limited to {n}\n{n} or less\nnot above {n}\nthe upper limit for the {m} is {n}\n{n} is the most that we accept\nanything over {n} is refused\nthe {m} should stay at or below {n}\nthe {m} is capped at {n}\nwhatever is more than {n} is too much\nthe {m} never goes over {n}\n(we|they) allow {n}, not more\na {m} beyond {n} is forbidden\nthe ceiling is {n}\n{n} tops"),
    LEAST: listed("the {m} must be at least {n}\nat least {n}\nno less than {n}\n{n} or more\nminimum {m}: {n}\nthe {m} has to reach {n}\n{n} is the least that we accept\nanything below {n} is refused\nfrom {n} upwards\nthe lower limit for the {m} is {n}\nnot under {n}\nthe {m} should not fall below {n}\na {m} of {n} is needed\n(we|they) require {n} or above\nwhatever is less than {n} is too little\nthe floor is {n}\n{n} and up\nstarting at {n}\nyou need {n}"),
    MORE: listed("the {m} must be more than {n}\nmore than {n}\nabove {n}\nover {n}\nit applies to a {m} greater than {n}\nonly beyond {n}\nhigher than {n}\nin excess of {n}\nit starts once {n} is passed\nwhen the {m} exceeds {n}\nanything above {n} counts"),
    LESS: listed("the {m} must be less than {n}\nless than {n}\nbelow {n}\nunder {n}\nit applies to a {m} smaller than {n}\nlower than {n}\nonly while it is short of {n}\nwhen the {m} falls below {n}\nanything below {n} counts\nbefore it gets to {n}"),
}  # fmt: skip
HEADS = ["", "", "", "rule: ", "policy: ", "our terms: ", "the contract says: ", "limit: ", "condition: ", "requirement: ", "law: ", "house rule: ", "instructions: "]
SUBJECTS = listed("the {m}\nthis {m}\nour {m}\nthe {m} in question\nmy {m}\ntoday the {m}\nthe {m} of {person}\nthe customer's {m}")
BARE_FACTS = listed("{m}: {n}\nwe have {n}\nit is {n}\n{n}\nmeasured: {n}\n{n} (was|were) counted\nthe figure is {n}\nnow at {n}\n{person} reports {n}\nvalue: {n}")
KEPT = listed("is (it|this|the {m}|that) (allowed|ok|okay|fine|acceptable|permitted|within the rule|as required|in order)?\nis the (rule|limit|condition|requirement) (kept|met|respected|observed|fulfilled|satisfied)?\ndoes (it|this|the {m}) (comply|conform|keep to the rule|meet the condition|qualify)?\nmay (it|this) (pass|be accepted|go ahead|be approved)?\ndo we (accept|approve) (it|this)?\nis all well with the {m}?\ncan it be let through?\ndoes the case (satisfy|respect) the rule?\nis the {m} right?")
BROKEN = listed("is (it|this|the {m}) (forbidden|not allowed|against the rule|refused|unacceptable|a violation)?\nis the (rule|limit|condition|requirement) (broken|violated|missed|ignored|breached)?\nmust (it|this) be (refused|rejected|turned down|stopped)?\ndo we have to (reject|refuse|decline) (it|this)?\ndoes (it|this|the {m}) (break|violate|miss) the (rule|limit|condition)?\nis there a (breach|violation|problem with the rule)?")
TOO_MUCH = listed("is (it|this|that|the {m}) too (much|high|large|big)?\nis the (limit|maximum) (exceeded|passed|overrun)?\nis it over the limit?\nis the {m} above what is allowed?")
TOO_LITTLE = listed("is (it|this|that|the {m}) too (little|low|small)?\nis the minimum missed?\nis it (short of|under) the (limit|minimum)?\nis the {m} below what is needed?\nis (more|a larger {m}) needed?")
ENOUGH = listed("is (it|this|that|the {m}) enough?\nis the {m} (sufficient|large enough|high enough)?\nis the minimum reached?\ndoes it suffice?")
APPLIES = listed("does (it|the rule|this) apply (here|)?\nis the (condition|threshold) (met|reached|passed)?\nis the case covered by the rule?\ndoes the rule count for this {m}?\nshould the rule be used?")
VERDICTS = [("allowed", "not allowed"), ("yes", "no"), ("accept", "reject"), ("rule kept", "rule broken"), ("fine", "violation"), ("approved", "refused"), ("ok", "not ok"),
            ("meets the condition", "misses the condition"), ("pass", "fail"), ("permitted", "forbidden")]  # fmt: skip
DECIDE = listed("what (follows|is the result|is the outcome)?\n(verdict|decision|outcome|result)\ndecide.\nhow do we decide?\n(judge|settle) the case.\nwhat happens with it?")


def put(world, phrases, measure, number=""):
    """A phrase with a measure's name and a number in it."""
    text = phrases.replace("{m}", measure).replace("{n}", number)
    return world.say(Phrases([text], tested=False)) if "{" in text else expand(text, world.rng)


def chosen(world, phrases):
    return expand(phrases.choose(world.rng, world.split), world.rng)


def shown(world, value, unit):
    text = str(value)
    if value >= 1000 and world.chance(0.5):
        text = f"{value:,}"
    if world.chance(0.08) and value < 13:
        text = "zero one two three four five six seven eight nine ten eleven twelve".split()[value]
    unit = unit[:-1] if value == 1 and unit.endswith("s") and unit[-2:] != "ss" else unit
    return f"{text} {unit}" if world.chance(0.93) else text


def questions_on(compare, y, x):
    """(phrases, whether yes) that fit the direction of the limit."""
    holds = HOLDS[compare](y, x)
    if compare in (MORE, LESS):
        return [(APPLIES, holds)]
    kept = [(KEPT, holds), (KEPT, holds), (BROKEN, not holds)]
    return kept + ([(TOO_MUCH, not holds)] if compare == MOST else [(TOO_LITTLE, not holds), (ENOUGH, holds)])


def limits(world):
    """A limit and a fact in many words: kept or broken?"""
    names, units, stands, (low, high) = world.pick(MEASURES)
    measure, unit = world.pick(names), world.pick(units)
    compare = world.pick([MOST, MOST, LEAST, LEAST, MORE, LESS])
    x, y = near(world, low, high)
    rule = world.pick(HEADS) + put(world, chosen(world, LIMITS[compare]), measure, shown(world, x, unit))
    if world.chance(0.65):
        fact = put(world, chosen(world, SUBJECTS) + " " + world.pick(stands), measure, shown(world, y, unit))
    else:
        fact = put(world, chosen(world, BARE_FACTS), measure, shown(world, y, unit))
    sure = 0.97 if x != y else 0.92
    options = questions_on(compare, y, x)
    questions = []
    for phrases, right in world.sample(options, world.pick([1, 1, 2])):
        questions.append(asking.noul(begun(world, put(world, chosen(world, phrases), measure)), sure if right else 1 - sure))
    if compare in (MOST, LEAST) and world.chance(0.3):
        verdicts = world.pick(untested(VERDICTS))
        right = verdicts[0 if HOLDS[compare](y, x) else 1]
        questions.append(asking.choice(world, begun(world, chosen(world, DECIDE)), dict.fromkeys(verdicts), right, 0.04))
    return laid_out(world, rule, fact, questions)


def begun(world, text):
    text = text[0].upper() + text[1:] if world.chance(0.65) else text
    return text.rstrip("?.") if world.chance(0.1) else text


def stray_fact(world):
    """A sentence with a number that has no bearing."""
    return world.say(Phrases(["the office has {n} rooms", "{person} called {n} times", "it happened on {date}", "we are on page {n}", "order {order}", "my desk is number {n}",
                              "{company} was founded {n} years ago", "ticket {order}", "{person} sent {n} mails"], tested=False))  # fmt: skip


def laid_out(world, rule, fact, questions):
    """Rule and fact as two sentences with others between, as an object, or one of them in the question."""
    rule, fact = texts.sentence(world, rule), texts.sentence(world, fact)
    roll = world.rng.random()
    if roll < 0.6:
        parts = [rule, fact] if world.chance(0.7) else [fact, rule]
        while world.chance(0.25) and len(parts) < 5:
            parts.insert(world.rng.randint(0, len(parts)), texts.sentence(world, stray_fact(world) if world.chance(0.5) else world.say(texts.FILLER)))
        return texts.wrapped(world, world.pick([" ", " ", "\n"]).join(parts), plain=0.88), questions
    if roll < 0.78:
        keys = world.pick([("rule", "case"), ("policy", "request"), ("limit", "value"), ("requirement", "facts"), ("condition", "found"), ("allowed", "actual"), ("norm", "measured")])
        return dict(zip(keys, (rule, fact))), questions
    known, asked = (rule, fact) if roll < 0.9 else (fact, rule)
    for question, _ in questions:
        question["instructions"] = f"{asked} {question['instructions']}" if world.chance(0.7) else f"{question['instructions']} ({asked.rstrip('.')})"
    return known, questions


# (name of a quantity, words for its largest, words for its smallest)
SUPERLATIVES = [
    ("price", "most expensive|dearest|costliest|priciest", "cheapest|least expensive|lowest priced"), ("age", "oldest|most aged", "youngest|newest"),
    ("height", "tallest|highest", "shortest|lowest"), ("weight", "heaviest|weightiest", "lightest"), ("speed", "fastest|quickest|swiftest", "slowest"),
    ("length", "longest", "shortest|briefest"), ("size", "biggest|largest", "smallest|tiniest"), ("temperature", "hottest|warmest", "coldest|coolest"),
    ("distance", "farthest|most distant|most remote", "nearest|closest"), ("score", "best|top|highest scoring", "worst|weakest|lowest scoring"),
    ("points", "best|leading|winning", "worst|last"), ("visitors", "busiest|most popular|most visited|fullest", "quietest|least popular|least visited|emptiest"),
    ("errors", "worst|most faulty|most error-prone", "cleanest|most reliable|least faulty"), ("votes", "most popular|winning|favourite", "least popular|last placed"),
    ("depth", "deepest", "shallowest"), ("noise", "loudest|noisiest", "quietest|most silent"), ("income", "richest|best paid", "poorest|worst paid"),
    ("stock", "best stocked", "scarcest|nearly sold out"), ("power", "strongest|most powerful", "weakest|feeblest"), ("rating", "best|top rated", "worst|lowest rated"),
    ("duration", "longest", "shortest|briefest"), ("count", "most frequent|commonest|most numerous", "rarest|least frequent"),
    ("sales", "best selling|most successful", "worst selling|least successful"), ("debt", "most indebted", "least indebted"),
    ("delay", "latest|most delayed", "most punctual|least delayed"), ("width", "widest|broadest", "narrowest"), ("users", "most used|most popular", "least used|least popular"),
]  # fmt: skip
WHICH_TOP = listed("(which|what|who) (is|was) the {s}?\nthe {s} one\nname the {s}.\nwhich (one|of them) is {s}?\n(find|choose|pick) the {s}.\n{s}")
WHICH_MOST = listed("which has the (largest|highest|greatest|biggest|top|maximum) {q}?\nwhere is the {q} (largest|highest|greatest)?\n(who|what) leads in {q}?\nmost {q}\n(highest|maximum|top) {q}\nwhich one has more {q} than the rest?\nwho comes first by {q}?\nwhich (beats|outranks) all others?\nwhat is number one?")
WHICH_LEAST = listed("which has the (smallest|lowest|least|minimum) {q}?\nwhere is the {q} (smallest|lowest)?\nleast {q}\n(lowest|minimum) {q}\nwhich one has less {q} than the rest?\nwho comes last by {q}?\nwhat is last?\nwhich (trails|ranks below) all others?")
IS_MORE = listed("is {a} (ahead of|above|over|higher than|greater than|larger than) {b} (in {q}|)?\ndoes {a} (have|show) (more|a higher {q}) than {b}?\ndoes {a} (beat|exceed|surpass|top) {b}?\nis the {q} of {a} (higher|larger|greater) than that of {b}?\n{a} > {b}?")
IS_LESS = listed("is {a} (behind|below|under|lower than|smaller than|less than) {b} (in {q}|)?\ndoes {a} have (less|a lower {q}) than {b}?\nis the {q} of {a} (lower|smaller) than that of {b}?\ndoes {a} trail {b}?\n{a} < {b}?")


def rankings(world):
    """Named numbers of a quantity: the first, the last, and which of two."""
    quantity, tops, bottoms = world.pick(SUPERLATIVES)
    names = world.slots.several(world.pick(["product", "person", "city", "noun", "service", "company"]), world.rng.randint(2, 6))
    top = world.pick([9, 20, 99, 99, 500, 3000])
    values = world.sample(range(1, top + 1), len(names))
    pairs = list(zip(names, values))
    unit = world.pick(["", "", " " + quantity, " points", " units"])
    roll = world.rng.random()
    if roll < 0.25:
        state = {quantity: dict(pairs)} if world.chance(0.6) else dict(pairs)
    elif roll < 0.45:
        state = [{world.pick(["name", "item", "who"]): n, quantity: v} for n, v in pairs]
    elif roll < 0.7:
        state = world.pick([f"{quantity}: ", "", f"{quantity}\n"]) + world.pick([", ", "; ", "\n", " | "]).join(f"{n}{world.pick([': ', ' = ', ' '])}{v}" for n, v in pairs)
    else:
        form = world.pick(["{} has {}", "{} stands at {}", "{} reached {}", "{} comes to {}", "{} shows {}", "we noted for {}: {}"])
        state = texts.joined(world, [form.format(n, f"{v}{unit}") for n, v in pairs], 0.1)
    questions = []
    for _ in range(world.pick([1, 1, 2])):
        most = world.chance(0.5)
        right = names[values.index(max(values) if most else min(values))]
        if world.chance(0.45):
            text = chosen(world, WHICH_TOP).replace("{s}", world.pick((tops if most else bottoms).split("|")))
            text += f" (by {quantity})" if quantity not in str(state) and world.chance(0.3) else ""
        else:
            text = chosen(world, WHICH_MOST if most else WHICH_LEAST).replace("{q}", quantity)
        questions.append(asking.choice(world, begun(world, text), dict.fromkeys(names), right, 0.02))
    if world.chance(0.5):
        a, b = world.sample(range(len(names)), 2)
        more = world.chance(0.5)
        text = chosen(world, IS_MORE if more else IS_LESS).replace("{a}", names[a]).replace("{b}", names[b]).replace("{q}", quantity)
        holds = values[a] > values[b] if more else values[a] < values[b]
        questions.append(asking.noul(begun(world, text), 0.97 if holds else 0.03))
    return state, questions


DUE = listed("(the|our|your) {t} is due (on|by) {x}\n(hand in|send|pay|file) the {t} by {x}\nlast day for the {t}: {x}\n{t} due: {x}\nthe {t} has to be here no later than {x}\nwe take the {t} until {x}\n(closing date|cut-off|time limit) for the {t}: {x}\nafter {x} no {t} is accepted\nthe {t} ends on {x}\nthe {t} expires on {x}\nvalid until {x}\n{x} at the latest")
DONE = listed("(it|the {t}) (came|arrived|reached us|was filed|was posted|went out|was handed over) on {y}\n{person} (sent|delivered|paid|filed) it on {y}\n(received|paid|filed|submitted|date|postmark): {y}\nit was {y} when it (came|went out)\nwe got the {t} on {y}\n{y}: {t} received\n{person} (turned up|came by) on {y}")
PUNCTUAL = listed("(is|was) (it|the {t}|this) (in time|on time|punctual|early enough|not too late|still valid|within the period)?\n(is|was) the (deadline|term|date|time limit) (kept|met|respected|observed)?\ndid (it|the {t}) (come|arrive) in time?\nmay we (accept|count) it?\ndoes the {t} count?")
OVERDUE = listed("(is|was) (it|the {t}|this) (late|too late|overdue|out of time|expired|past the date)?\n(is|was) the (deadline|term|date|time limit) (missed|passed|overrun)?\ndid (it|the {t}) come too late?\nmust we refuse it?\nis there a delay?")
DUE_THINGS = "application form payment report invoice tax return essay proposal order request bid claim homework offer voucher ticket coupon licence registration answer manuscript rent fee entry draft contract passport visa permit complaint appeal".split()
HOURS = listed("the {t} (is open|opens|works) from {x} to {z}\n{t}: {x} - {z}\nyou can come to the {t} between {x} and {z}\nthe {t} opens at {x} and closes at {z}\nopening times of the {t}: {x} to {z}\nthe {t} is staffed from {x} until {z}\nhours: {x}-{z}\nservice from {x} till {z}\nthe {t} shuts at {z} and starts at {x}")
VISITS = listed("(I|we|they|{person}) (get|come|go) there at {y}\n{person} (turns up|will come|plans to come|knocks) at {y}\nvisit: {y}\nit is {y} (now|)\n(arrival|planned for|appointment): {y}\nshall we meet there at {y}\nthe (bus|train|taxi) gets there at {y}")
OPEN_THEN = listed("is (it|the {t}) (open|staffed|working|accessible) (then|at that time|)?\ncan (they|one|the visitor) (get in|go in|be served)?\nis that within (the|opening) hours?\ndoes the time (fit|suit)?\nwill somebody be there?")
SHUT_THEN = listed("is (it|the {t}) (shut|closed|not open) (then|at that time|)?\n(is|would) that (be|) outside (the|opening) hours?\nis it the wrong time?\nwill nobody be there?\ndo they come in vain?")
OPEN_THINGS = "shop museum office pool library bank pharmacy bakery market clinic gym garage cafe zoo desk hotline archive canteen counter station garden cinema post kiosk practice surgery".split()


def days_apart(world):
    """Two dates in one form of writing, and whether the second is not after the first."""
    month, day, year = world.rng.randrange(12), world.rng.randint(1, 28), world.rng.randint(2015, 2030)
    step = world.pick([0, 1, 1, 2, 3, 5, 8, 12, 20, 40, 300])
    step = step if world.chance(0.5) else -step
    ordinal = year * 336 + month * 28 + day - 1 + step
    dates = [(day, month, year), (ordinal % 28 + 1, ordinal % 336 // 28, ordinal // 336)]
    years = dates[0][2] != dates[1][2] or world.chance(0.3)
    form = world.pick([
        lambda d, m, y: f"{d} {MONTHS[m]}" + (f" {y}" if years else ""), lambda d, m, y: f"{MONTHS[m]} {d}" + (f", {y}" if years else ""),
        lambda d, m, y: f"{y}-{m + 1:02d}-{d:02d}", lambda d, m, y: f"{d}.{m + 1}." + (f"{y}" if years else ""), lambda d, m, y: f"the {d}th of {MONTHS[m]}" + (f" {y}" if years else ""),
    ])  # fmt: skip
    return form(*dates[0]), form(*dates[1]), step <= 0


def hour(world, minutes, style):
    h, m = divmod(minutes, 60)
    if style == 0:
        return f"{h}:{m:02d}"
    if style == 1:
        return f"{h:02d}:{m:02d}"
    return f"{(h - 1) % 12 + 1}{f':{m:02d}' if m else ''} {'am' if h < 12 else 'pm'}"


def punctuality(world):
    """Before or after a date, a weekday or an hour; within opening hours or not."""
    roll = world.rng.random()
    if roll < 0.6:
        thing = world.pick(DUE_THINGS)
        if roll < 0.4:
            x, y, kept = days_apart(world)
        elif roll < 0.5:
            a, b = world.rng.randrange(7), world.rng.randrange(7)
            x, y, kept = DAYS[a], DAYS[b], b <= a
        else:
            a, b, style = world.rng.randint(24, 90) * 15, world.rng.randint(24, 90) * 15, world.rng.randrange(3)
            x, y, kept = hour(world, a, style), hour(world, b, style), b <= a
        rule, fact = chosen(world, DUE).replace("{x}", x), chosen(world, DONE).replace("{y}", y)
        phrases, right = world.pick([(PUNCTUAL, kept), (OVERDUE, not kept)])
    else:
        thing, style = world.pick(OPEN_THINGS), world.rng.randrange(3)
        opens, closes = world.rng.randint(12, 26) * 30, world.rng.randint(28, 46) * 30
        visit = world.rng.randint(20, 94) * 15
        kept = opens <= visit < closes
        rule = chosen(world, HOURS).replace("{x}", hour(world, opens, style)).replace("{z}", hour(world, closes, style))
        fact = chosen(world, VISITS).replace("{y}", hour(world, visit, style))
        phrases, right = world.pick([(OPEN_THEN, kept), (SHUT_THEN, not kept)])
    rule, fact = (put(world, text.replace("{t}", thing), thing) for text in (rule, fact))
    text = begun(world, chosen(world, phrases).replace("{t}", thing))
    return laid_out(world, rule, fact, [asking.noul(text, 0.96 if right else 0.04)])
