"""Numbers and rules: is a limit kept, which tier applies, is it in time, which is the largest."""

from . import asking, texts
from .grammar import Phrases, fill, parted
from .topics import instructions
from .vocab import MONTHS

# Rules: (rule, fact, questions whose answer is yes where the fact keeps the rule, questions with the contrary answer, how the
# number is compared). {x} is the rule's number, {y} the fact's.
MOST, LEAST, MORE, LESS = "most", "least", "more", "less"
HOLDS = {MOST: lambda y, x: y <= x, LEAST: lambda y, x: y >= x, MORE: lambda y, x: y > x, LESS: lambda y, x: y < x}
RULES = [
    (MOST, Phrases("(items|goods|products|purchases) (may|can) be (returned|sent back) within {x} days (of delivery|of purchase|)\nreturns are accepted (up to|for|until) {x} days after (delivery|purchase)\nthe return period is {x} days\n!goods go back at the latest {x} days after they came"),
     Phrases("the (customer|buyer) (received|got|bought) (it|the {product}) {y} days ago (and wants to return it|)\nthe {product} (was bought|arrived|was delivered) {y} days ago\n!{y} days have passed since the {product} came"),
     Phrases("(is|may|can) (the return|a return|it|the {product}) (allowed|be returned|possible|still be returned)?\nis the return (in time|within the period|allowed under the policy)?\n!may the {product} go back?"),
     Phrases("is it too late (to return it|for a return|)?\nmust the return be refused?\n!has the period run out?"), (3, 90)),
    (MOST, Phrases("the (speed |)limit is {x} (km/h|mph)\nno faster than {x} km/h (here|)\n!{x} km/h is the utmost here"),
     Phrases("(the car|he|she|the driver|the lorry) (drove|went|was measured at|is going) {y} (km/h|mph)\nspeed: {y} km/h\n!the camera saw {y} km/h"),
     Phrases("(is|was) the (car|driver|speed) within the limit?\nis the speed (legal|allowed)?\n!did the driver keep to it?"),
     Phrases("(is|was) the (car|driver) (too fast|over the limit|speeding)?\nmust the driver pay a fine?\n!was the pedal pressed too hard?"), (20, 140)),
    (MOST, Phrases("(expenses|costs|purchases) (up to|of at most) {x} (dollars|euros) need no approval\nthe (limit|budget) (is|for this is) {x} (dollars|euros)\n(at most|no more than) {x} (dollars|euros) may be spent\n!a boss must sign for all above {x} euros"),
     Phrases("(the receipt|the bill|the order|the dinner|the hotel) (is for|comes to|costs|amounts to) {y} (dollars|euros)\nwe (spent|need|paid) {y} (dollars|euros)\n!{y} euros were laid out"),
     Phrases("is (it|this|the amount|the expense) (within the limit|allowed without approval|within the budget|ok)?\ncan it be paid without approval?\n!does the sum stay inside the frame?"),
     Phrases("is approval (needed|required)?\n(does it exceed|is it over|is it above) the (limit|budget)?\n!must the boss sign?"), (10, 900)),
    (MOST, Phrases("(bags|luggage|suitcases|parcels) (of|up to) {x} kg (are included|are free|are allowed)\nthe maximum weight is {x} kg\n!whatever weighs {x} kg or less flies free"),
     Phrases("(my|the|her) (bag|suitcase|parcel) (weighs|has) {y} kg\nweight: {y} kg\n!the scale shows {y} kg"),
     Phrases("is the (bag|parcel|weight) (ok|allowed|included|light enough)?\n!does it travel at no charge?"),
     Phrases("is the (bag|parcel) too heavy?\n(must|do) we pay extra?\n!does it tip the scale too far?"), (5, 40)),
    (LEAST, Phrases("(visitors|members|players|drivers|applicants) must be (at least|) {x} years (old|or older)\n(minimum age|age limit): {x}\nfrom the age of {x} (people may|you may) (take part|enter|drive)\n!nobody below {x} years gets in"),
     Phrases("{person} is {y} (years old|)\nage of {person}: {y}\n!{person} turned {y} not long ago"),
     Phrases("(is|may) {person} (old enough|allowed|take part|enter)?\nmay {person} (come in|join|apply)?\n!do the years suffice?"),
     Phrases("is {person} too young?\nmust {person} be refused?\n!is it too early in life for {person}?"), (4, 30)),
    (LEAST, Phrases("(staff|employees) with (at least|) {x} years of service (or more|) get (a bonus|extra holiday|a pension)\n{x} years of experience are (required|needed)\n!after no less than {x} years there is a bonus"),
     Phrases("{person} has (worked here for|been with us for|) {y} years (of experience|)\n{person} joined {y} years ago\n!{y} years of duty lie behind {person}"),
     Phrases("does {person} (get it|qualify|meet the condition)?\nhas {person} enough (experience|years)?\n!has {person} served long enough?"),
     Phrases("does {person} (miss the condition|lack experience)?\n!must {person} serve on?"), (1, 20)),
    (LEAST, Phrases("orders (of|from) {x} (euros|dollars) (or more|upwards|) ship free\nfree (shipping|delivery) (from|starting at) {x} (euros|dollars)\n(minimum order|minimum purchase): {x} (euros|dollars)\n!spend {x} euros or beyond and the post is on us"),
     Phrases("the (order|basket|purchase) (is|costs|comes to|amounts to) {y} (euros|dollars)\n(order value|total): {y} (euros|EUR)\n!the basket holds goods for {y} euros"),
     Phrases("(does|is) the (order|delivery) (ship free|free|free of charge)?\nis the minimum (reached|met)?\n!is the post on the house?"),
     Phrases("must the customer pay for (shipping|delivery)?\nis the order too small?\n!does the post cost something?"), (10, 200)),
    (LEAST, Phrases("(you need|) {x} points (are needed|) to (pass|succeed|win)\n(the pass mark|passing score) is {x} (points|percent|)\n!whoever has {x} points or beyond is through"),
     Phrases("{person} (scored|got|reached|has) {y} (points|percent|)\nresult of {person}: {y}\n!{y} points stand beside {person}"),
     Phrases("(did|has) {person} (pass|passed|succeed|make it)?\nis it (enough|a pass)?\n!is {person} through?"),
     Phrases("(did|has) {person} (fail|failed)?\n!is {person} out?"), (5, 100)),
    (MORE, Phrases("(alarm|warning|alert) (above|if more than|when over) {x} (degrees|percent|bar)\n(the threshold|the limit|alarm threshold) is {x} (degrees|percent|bar)\n!the siren sounds past {x} degrees"),
     Phrases("(the sensor|the thermometer|the gauge|it) (shows|reads|measures) {y} (degrees|percent|bar)\n(current value|reading|temperature|value): {y}\n!at this moment it stands at {y}"),
     Phrases("(is|should) (there|it|the alarm|the value) (an alarm|above the threshold|go off|too high)?\ndoes the value exceed the (limit|threshold)?\n!must the siren sound?"),
     Phrases("is the value (normal|fine|within the limit|ok)?\nis (everything|all) in the normal range?\n!may the guards stay seated?"), (2, 99)),
    (LESS, Phrases("(reorder|order new stock) when (fewer|less) than {x} (pieces|units) are left\nthe stock must not fall below {x}\n(children|guests) under {x} (years|) (enter free|pay nothing)\n!below {x} it is for free"),
     Phrases("there are {y} (pieces|units) (left|in stock)\n{person} is {y}\n(stock|age|count): {y}\n!we counted {y}"),
     Phrases("is (it|the number|the age|the count) below the (limit|line)?\ndoes the rule for small numbers apply?\n!does it stay beneath?"),
     Phrases("is (it|the number|the count) at or above the (limit|line)?\n!does it get up to the line?"), (3, 60)),
    (MOST, Phrases("(the room|the hall|the bus|the boat) (seats|holds|has room for) {x} (people|persons|)\n(at most|no more than|up to) {x} (people|guests|persons) (may come in|are allowed)\n!there is space for {x} heads"),
     Phrases("(we are|we expect|there are) {y} (people|guests|persons)\n{y} (people|guests) (want to come|have signed up|are coming)\n!{y} heads are on the list"),
     Phrases("(do|will) (they|we|all) (fit in|have room|find a seat)?\nis the (room|bus|hall) big enough?\n!does everybody find a place?"),
     Phrases("(is|are) (there|it) too many (people|)?\nis the (room|bus|hall) too small?\n!will some stand outside?"), (4, 200)),
    (MOST, Phrases("(members|readers|customers|each person) (may|can) (borrow|take|buy|book) (at most|up to|no more than) {x} (items|books|tickets|seats)\nlimit per (person|customer): {x}\n!{x} things a head, not one beyond"),
     Phrases("(he|she|{person}|the customer) (wants|asks for|has taken|orders) {y} (items|books|tickets|)\nrequested: {y}\n!{person} reaches for {y}"),
     Phrases("is (this|it|the request) (allowed|within the limit|ok)?\n!does the rule permit it?"),
     Phrases("is (this|it) too many?\ndoes (this|it) (break|exceed) the limit?\n!is it one too many or worse?"), (2, 20)),
]  # fmt: skip


def near(world, low, high):
    """Two numbers, often close, sometimes equal."""
    x = world.rng.randint(low, high)
    roll = world.rng.random()
    if roll < 0.08:
        return x, x
    if roll < 0.45:
        return x, max(0, x + world.pick([-5, -4, -3, -2, -1, 1, 2, 3, 4, 5]))
    return x, world.rng.randint(max(0, low - 2), high * world.pick([1, 1, 2]))


def decimal(world, value):
    return f"{value}.{world.rng.randint(0, 9)}{world.pick(['', '0', '5'])}"


def numbered(world, phrases, x, y):
    return fill(phrases.choose(world.rng, world.split).replace("{x}", str(x)).replace("{y}", str(y)), world.rng, world.slots)


def placed(world, rule, fact, questions):
    """Rule and fact in the state in some form; or the rule, or the fact, in the question."""
    rule, fact = texts.sentence(world, rule), texts.sentence(world, fact)
    roll = world.rng.random()
    if roll < 0.55:
        pair = [rule, fact]
        if world.chance(0.3):
            pair.reverse()
        while world.chance(0.3):
            pair.insert(world.rng.randint(0, len(pair)), texts.sentence(world, world.say(texts.FILLER)))
        state = " ".join(pair)
        if world.chance(0.15):
            state = world.pick(["policy: ", "rule: ", "note: "]) + state
        return texts.wrapped(world, state, plain=0.85), questions
    if roll < 0.75:
        keys = world.pick([("policy", "case"), ("rule", "facts"), ("rule", "situation"), ("terms", "request")])
        fields = dict(zip(keys, (rule, fact)))
        return (dict(reversed(fields.items())) if world.chance(0.3) else fields), questions
    known, asked = (rule, fact) if roll < 0.88 else (fact, rule)
    for question, _ in questions:
        question["instructions"] = world.pick([f"{asked} {question['instructions']}", f"{question['instructions']} {asked}"])
    return texts.wrapped(world, known, plain=0.9), questions


def rule(world):
    compare, rules, facts, yes, no, (low, high) = world.pick(RULES)
    x, y = near(world, low, high)
    if world.chance(0.08) and x != y:
        x, y = decimal(world, x), decimal(world, y)
    holds = HOLDS[compare](float(y), float(x))
    rule_text, fact_text = numbered(world, rules, x, y), numbered(world, facts, x, y)
    sure = 0.97 if float(x) != float(y) else 0.93
    questions = []
    for phrases, right in world.sample([(yes, holds), (no, not holds)], world.pick([1, 1, 2])):
        questions.append(asking.noul(instructions_text(world, phrases), sure if right else 1 - sure))
    if world.chance(0.3):
        options = {"allowed" if compare in (MOST, LEAST) else "applies": None, "not allowed" if compare in (MOST, LEAST) else "does not apply": None}
        right = list(options)[0 if holds else 1]
        text = world.pick(["What follows from the rule?", "Decide the case.", "What applies?"]) if world.split != "test" else "How is the case to be settled?"
        questions.append(asking.choice(world, text, options, right, 0.04))
    return placed(world, rule_text, fact_text, questions)


def instructions_text(world, phrases):
    text = world.say(phrases)
    return text[0].upper() + text[1:] if world.chance(0.7) else text


COMPARE = Phrases("is {a} (greater|larger|higher|more|bigger) than {b}?\nis {a} (above|over) {b}?\ndoes {a} exceed {b}?\n!does {a} outdo {b}?")
COMPARE_LESS = Phrases("is {a} (less|smaller|lower) than {b}?\nis {a} (below|under) {b}?\n!does {a} fall short of {b}?")
QUANTITIES = parted({
    "train": "price stock weight height age length temperature speed count score budget cost time distance users errors seats pages".split(),
    "test": "altitude mileage turnover voltage depth balance width attendance latency humidity".split(),
})
LARGEST = Phrases("which (is|has) the (largest|highest|biggest|greatest) ({what}|number|value)?\nwho or what has the most?\n(which|what) is the maximum?\n!which one tops the list?")
SMALLEST = Phrases("which (is|has) the (smallest|lowest|least) ({what}|number|value)?\n(which|what) is the minimum?\n!which one is at the bottom?")
ZERO = Phrases("which (item|one|product) is (out of stock|sold out|missing|at zero)?\n(what|which) has run out?\n!of what is there nothing left?")


def table(world):
    """Named numbers: the largest, the smallest, comparisons."""
    kinds = ["product", "person", "city", "noun", "service"]
    names = world.slots.several(world.pick(kinds), world.rng.randint(2, 5))
    top = world.pick([9, 20, 99, 99, 500, 3000])
    values = world.sample(list(range(1, top + 1)), len(names))
    what = world.pick(QUANTITIES[world.split])
    zero = world.chance(0.2)
    if zero:
        values[world.rng.randrange(len(values))] = 0
    pairs = list(zip(names, values))
    shape = world.rng.random()
    if shape < 0.35:
        state = {what: dict(pairs)} if world.chance(0.5) else dict(pairs)
    elif shape < 0.6:
        state = [{"name": n, what: v} for n, v in pairs]
    elif shape < 0.8:
        state = world.pick(["{} of {}: {}"] * 2).format(what, names[0], values[0]) + "".join(f", {n}: {v}" for n, v in pairs[1:])
    else:
        state = texts.sentence(world, ", ".join(f"{n} has {v}" for n, v in pairs))
    world.slots.kept["what", False] = what
    questions = []
    options = {n: None for n in names}
    if zero:
        questions.append(asking.choice(world, instructions(world, ZERO), options, names[values.index(0)], 0.02))
    largest = world.chance(0.5)
    right = names[values.index(max(values) if largest else min(values))]
    questions.append(asking.choice(world, instructions(world, LARGEST if largest else SMALLEST), options, right, 0.02))
    a, b = world.sample(range(len(names)), 2)
    world.slots.kept["a", False], world.slots.kept["b", False] = (names[a], names[b]) if world.chance(0.6) else (names[a], str(world.rng.randint(0, top)))
    other = values[b] if world.slots.kept["b", False] == names[b] else int(world.slots.kept["b", False])
    if other != values[a]:
        more = world.chance(0.5)
        holds = values[a] > other if more else values[a] < other
        questions.append(asking.noul(instructions_text(world, COMPARE if more else COMPARE_LESS), 0.97 if holds else 0.03))
    return state, questions


IN_TIME = Phrases("(was|is) (it|the application|the form|the payment) in time?\n(was|is) the deadline (met|kept)?\n!did it come soon enough?")
TOO_LATE = Phrases("(was|is) (it|the application|the form|the payment) (too late|late)?\n(was|is) the deadline missed?\n!did it come past the day?")
DEADLINE = Phrases("(the application|the form|the payment|the report) must (arrive|be in|be paid|be handed in) by {x}\n(the deadline|the due date|the closing date) is {x}\ndeadline: {x}\n!{x} is the last day for it")
ARRIVED = Phrases("(it|we received it|the application|the form) (came|arrived|was sent|was received) on {y}\n(received|paid|date of receipt): {y}\n{person} (handed it in|sent it|paid) on {y}\n!the stamp says {y}")
OPEN = Phrases("(the shop|the museum|the office|the pool|the library) is open from {x} to {z}\n(opening hours|open): {x}-{z}\n!doors are open between {x} and {z}")
COMING = Phrases("(we|I|they|{person}) (arrive|come|will be there|want to come) at {y}\n(time of visit|arrival): {y}\n!at {y} we stand before the door")
IS_OPEN = Phrases("(is|will) (it|the place) (be open|open) (then|at that time|when they arrive)?\ncan they get in?\n!do they find the door open?")
IS_CLOSED = Phrases("(is|will) (it|the place) (be closed|closed) (then|at that time)?\n!do they stand before a locked door?")


def calendar(world):
    """A day before or after a deadline; a time within opening hours."""
    if world.chance(0.55):
        form = world.rng.randrange(3)
        month, day, year = world.rng.randrange(12), world.rng.randint(1, 28), world.rng.randint(2019, 2027)
        step = world.pick([0, 1, 2, 3, 5, 9, 14, -1, -2, -4, -8, 30, -30, 60, -60])
        ordinal = year * 336 + month * 28 + day - 1 + step
        year2, month2, day2 = ordinal // 336, ordinal % 336 // 28, ordinal % 28 + 1
        make = [lambda d, m, y: f"{d} {MONTHS[m]}" + (f" {y}" if year2 != year else ""), lambda d, m, y: f"{y}-{m + 1:02d}-{d:02d}",
                lambda d, m, y: f"{MONTHS[m]} {d}" + (f", {y}" if year2 != year else "")][form]  # fmt: skip
        x, y, kept = make(day, month, year), make(day2, month2, year2), step <= 0
        rule_text, fact_text, yes, no = numbered(world, DEADLINE, x, y), numbered(world, ARRIVED, x, y), IN_TIME, TOO_LATE
    else:
        opens, closes = world.rng.randint(6, 11), world.rng.randint(14, 22)
        hour, minute = world.rng.randint(5, 23), world.pick([0, 15, 30, 45])
        kept = opens * 60 <= hour * 60 + minute < closes * 60
        x, z, y = f"{opens}:00", f"{closes}:00", f"{hour}:{minute:02d}"
        template = OPEN.choose(world.rng, world.split).replace("{z}", z)
        rule_text = fill(template.replace("{x}", x), world.rng, world.slots)
        fact_text, yes, no = numbered(world, COMING, x, y), IS_OPEN, IS_CLOSED
    phrases, right = world.pick([(yes, kept), (yes, kept), (no, not kept)])
    return placed(world, rule_text, fact_text, [asking.noul(instructions_text(world, phrases), 0.96 if right else 0.04)])


TIER = Phrases("which (discount|rate|class|band|tier|price) applies?\nwhat does the (customer|group|person) get?\n(discount|band|tier)\n!into which band does it fall?")
FITTING = Phrases("(which|what) is the smallest (room|box|car|size) that is (big|large) enough?\nwhich (room|box|car|size) should (we|they) take?\n!which one just holds it all?")


def tiers(world):
    """From so many on: that; or the smallest room that is enough."""
    steps = sorted(world.sample(range(2, 60), world.pick([2, 3])))
    value = world.rng.randint(1, 75)
    if world.chance(0.6):
        names = [f"{5 * (i + 1)} percent" for i in range(len(steps))] if world.chance(0.6) else ["bronze", "silver", "gold"][: len(steps)]
        unit = world.pick(["tickets", "pieces", "nights", "points", "books"])
        lines = [f"{s} or more {unit}: {n}" if world.chance(0.7) else f"from {s} {unit}: {n}" for s, n in zip(steps, names)]
        state = world.pick(["", "Discounts: ", "Tiers: "]) + world.pick([", ", "; ", "\n"]).join(lines) + ". "
        state += world.pick([f"The customer has {value} {unit}.", f"{world.slots.fresh('person')} orders {value} {unit}.", f"Ordered: {value} {unit}"])
        reached = [n for s, n in zip(steps, names) if value >= s]
        options = {n: None for n in ["none", *names]}
        return state, [asking.choice(world, instructions(world, TIER), options, reached[-1] if reached else "none", 0.03)]
    value = world.rng.randint(1, steps[-1])
    names = [f"{world.pick(['room', 'box', 'hall'])} {letter}" for letter in world.sample(["A", "B", "C", "D", "E"], len(steps))]
    order = world.sample(range(len(steps)), len(steps))
    state = ", ".join(f"{names[i]} {world.pick(['holds', 'has room for', 'seats'])} {steps[i]}" for i in order)
    state = texts.sentence(world, state) + f" {world.pick(['We need room for', 'There are', 'We expect'])} {value}."
    right = names[min(i for i in range(len(steps)) if steps[i] >= value)]
    return state, [asking.choice(world, instructions(world, FITTING), {n: None for n in names}, right, 0.03)]


COUNT = Phrases("how many ({what}) (are there|are listed|are in the list)?\n(number|count) of {what}\n!count the {what}.")


FLAGS = parted({"train": "active paid urgent approved member signed shipped open verified trial public archived blocked insured".split(),
                "test": "renewed fragile audited boarded sealed pinned retired".split()})  # fmt: skip
STATUSES = parted({"train": "new open pending closed sent lost done failed running waiting".split(),
                   "test": "parked dormant escalated rejected frozen merged".split()})  # fmt: skip


def drawn(world, words, count):
    """Some of the split's words, after a draw from all of training's, which the suite's random numbers count."""
    world.sample(words["all"], count)
    return world.sample(words[world.split], count)


def fields(world):
    """An object's fields: yes or no, a value, a count."""
    keys = drawn(world, FLAGS, 3)
    state = {k: world.chance(0.5) for k in keys}
    status_values = drawn(world, STATUSES, 4)
    status_key = world.pick(["status", "state", "phase"])
    state[status_key] = status_values[0]
    listed = world.slots.several(world.pick(["product", "person", "city"]), world.rng.randint(1, 5))
    list_key = world.pick(["items", "members", "stops", "entries"])
    state[list_key] = listed
    shuffled = list(state.items())
    world.rng.shuffle(shuffled)
    state = {**dict(shuffled), **extras_of(world)}
    if world.chance(0.3):
        state = {world.pick(["record", "order", "user", "data"]): state}
    key = keys[0]
    value = dict(shuffled)[key]
    asks = world.pick(["Is it {}?", "is the field {} true?", "{}?", "Is {} set?"]) if world.split != "test" else "Does {} hold?"
    questions = [asking.noul(asks.format(key), 0.97 if value else 0.03)]
    questions.append(asking.choice(world, f"What is the {status_key}?" if world.chance(0.6) else status_key, {v: None for v in status_values}, status_values[0], 0.02))
    world.slots.kept["what", False] = list_key
    counts = sorted(world.sample(range(1, 6), 3) + [len(listed)])
    questions.append(asking.choice(world, instructions(world, COUNT), {str(c): None for c in dict.fromkeys(counts)}, str(len(listed)), 0.05))
    absent = world.slots.fresh("product")
    inside = world.chance(0.5) or absent in listed
    asked = world.pick(listed) if inside else absent
    questions.append(asking.noul(f"Is {asked} in the list?" if world.chance(0.6) else f"Do the {list_key} include {asked}?", 0.97 if inside else 0.03))
    return state, world.sample(questions, world.pick([1, 2, 3]))


def extras_of(world):
    return texts.extras(world) if world.chance(0.4) else {}


WARRANTY = Phrases("(warranty|guarantee): {x} (years|year) (from purchase|)\nthe (warranty|guarantee) (lasts|is valid for|ends after) {x} (years|year)\n!we vouch for it {x} years long")
BOUGHT = Phrases("bought in {m} {y}, (broke|failed|defective) in {o} {z}\nthe {product} was (bought|purchased) in {m} {y} and (broke|failed) in {o} {z}\n!acquired {m} {y}, out of order since {o} {z}")
COVERED = Phrases("is (it|the device|the {product}) (still|) (under warranty|covered|under guarantee)?\n(does|do) the (warranty|guarantee) (still apply|apply|cover it)?\n!must the maker mend it for free?")


def warranty(world):
    years = world.rng.randint(1, 5)
    first, month = world.rng.randint(2012, 2024), world.rng.randrange(12)
    passed = world.rng.randint(1, years * 24)
    if abs(passed - years * 12) < 1:
        passed += 2
    end = first * 12 + month + passed
    bought = BOUGHT.choose(world.rng, world.split)
    for slot, value in (("m", MONTHS[month]), ("y", first), ("o", MONTHS[end % 12]), ("z", end // 12)):
        bought = bought.replace("{" + slot + "}", str(value))
    fact = fill(bought, world.rng, world.slots)
    kept = passed < years * 12
    return placed(world, numbered(world, WARRANTY, years, 0), fact, [asking.noul(instructions_text(world, COVERED), 0.95 if kept else 0.05)])


WHICH_MORE = Phrases("which (is|number is) (larger|greater|more|higher|bigger)?\nlarger\nmaximum\n!which number beats the others?")
WHICH_LESS = Phrases("which (is|number is) (smaller|less|lower)?\nsmaller\nminimum\n!which number is beaten by all?")


def plain_numbers(world):
    """Numbers and nothing else."""
    top = world.pick([9, 9, 30, 99, 99, 400, 999, 5000])
    values = world.sample(range(top + 1), world.pick([2, 2, 3]))
    names = world.pick([["a", "b", "c"], ["x", "y", "z"], ["first", "second", "third"], ["limit", "value", "other"]])[: len(values)]
    pairs = dict(zip(names, values))
    more = world.chance(0.5)
    right = (max if more else min)(values)
    state = world.pick([pairs, ", ".join(f"{n} = {v}" for n, v in pairs.items()), " ".join(map(str, values))])
    questions = []
    if isinstance(state, dict) or "=" in state:
        named = {n: None for n in names}
        questions.append(asking.choice(world, world.say(WHICH_MORE if more else WHICH_LESS), named, names[values.index(right)], 0.01))
        a, b = world.sample(range(len(names)), 2)
        world.slots.kept["a", False], world.slots.kept["b", False] = names[a], names[b]
        holds = values[a] > values[b] if more else values[a] < values[b]
        questions.append(asking.noul(world.say(COMPARE if more else COMPARE_LESS), 0.98 if holds else 0.02))
    else:
        questions.append(asking.choice(world, world.say(WHICH_MORE if more else WHICH_LESS), {str(v): None for v in values}, str(right), 0.01))
        world.slots.kept["a", False], world.slots.kept["b", False] = str(values[0]), str(values[1])
        holds = values[0] > values[1] if more else values[0] < values[1]
        questions.append(asking.noul(world.say(COMPARE if more else COMPARE_LESS), 0.98 if holds else 0.02))
    return state, questions
