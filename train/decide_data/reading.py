"""Reading: who does what, from where to where, which aspect is good, what is said and what is not."""

from . import asking, binding, texts
from .grammar import Phrases, fill, parted
from .lexicon import LANGUAGES, SYNONYMS, THESAURUS, WORDS
from .topics import instructions
from .vocab import DAYS

TASKS = parted({
    "train": [("takes the minutes", "taking the minutes"), ("orders the food", "ordering the food"), ("calls the client", "calling the client"),
              ("writes the report", "writing the report"), ("cleans the kitchen", "cleaning the kitchen"), ("feeds the cat", "feeding the cat"),
              ("pays the bill", "paying the bill"), ("drives the van", "driving the van"), ("opens the shop", "opening the shop"),
              ("repairs the bike", "repairing the bike"), ("buys the tickets", "buying the tickets"), ("translates the letter", "translating the letter"),
              ("tests the release", "testing the release"), ("waters the plants", "watering the plants"), ("prints the posters", "printing the posters"),
              ("picks up the children", "picking up the children"), ("checks the numbers", "checking the numbers"), ("books the room", "booking the room"),
              ("leads the project", "leading the project"), ("plays the piano", "playing the piano")],
    "test": [("paints the fence", "painting the fence"), ("tunes the guitar", "tuning the guitar"), ("guards the gate", "guarding the gate"),
             ("sews the costumes", "sewing the costumes"), ("signs the lease", "signing the lease"), ("bakes the bread", "baking the bread"),
             ("rows the boat", "rowing the boat"), ("counts the votes", "counting the votes")],
})  # fmt: skip
TASK_LINE = Phrases("{p} {does}\n{p} is {doing}\n{doing} is the job of {p}\n{doing}: {p}\n{p} will be {doing}\n!it falls to {p} to be {doing}\n!for {doing} we have {p}")
WHO_DOES = Phrases("who {does}?\nwho is {doing}?\nwho is responsible for {doing}?\nwhich person {does}?\n!whose part is {doing}?")
DOES = Phrases("is {p} {doing}?\nis it {p} who {does}?\n!does {doing} fall to {p}?")


def with_slots(world, phrases, **values):
    return fill(put(phrases.choose(world.rng, world.split), values), world.rng, world.slots)


def put(template, values):
    for name, value in values.items():
        template = template.replace("{" + name + "}", str(value).replace("(", "").replace("|", " "))
    return template


def asked(world, phrases, **values):
    text = with_slots(world, phrases, **values)
    return text[0].upper() + text[1:] if world.chance(0.75) else text


def options_of(names):
    return {name: None for name in names}


def duties(world):
    count = world.rng.randint(2, 4)
    people = world.slots.several("person", count + (1 if world.chance(0.4) else 0))
    tasks = binding.tasks(world, count) if world.split == "train" and world.chance(0.7) else world.sample(TASKS[world.split], count)
    lines = [with_slots(world, TASK_LINE, p=p, does=does, doing=doing) for p, (does, doing) in zip(people, tasks)]
    state = ", ".join(lines) if world.chance(0.5) else " ".join(texts.sentence(world, x) for x in lines)
    if world.chance(0.2):
        state = {p: doing for p, (_, doing) in zip(people, tasks)}
    at = world.rng.randrange(count)
    does, doing = tasks[at]
    questions = [asking.choice(world, asked(world, WHO_DOES, does=does, doing=doing), options_of(people), people[at], 0.02)]
    other = world.rng.randrange(len(people))
    questions.append(asking.noul(asked(world, DOES, p=people[other], does=does, doing=doing), 0.97 if other == at else 0.03))
    return state, questions


TRIP = Phrases("(the|our|my) (flight|train|bus|ferry) from {a} to {b} (leaves|departs|starts) at {time}\n{person} (travels|flies|drives|goes) from {a} to {b} (on {day}|)\nfrom: {a}, to: {b}\n{a} - {b}, {n} euros\nwe leave {a} (in the morning|at {time}) and arrive in {b} (in the evening|)\nthe (parcel|lorry|letter) (went|was sent) from {a} to {b}\n!bound for {b}, we say goodbye to {a}\n!{b} awaits those who set out from {a}")
DESTINATION = Phrases("(what|which) is the destination?\nwhere (do they go|does it go|is the trip going|do they travel) (to|)?\n(destination|arrival)\nwhich (city|place) do they (arrive in|travel to)?\n!where does it end?")
ORIGIN = Phrases("(what|which) is the (starting point|place of departure)?\nwhere do they (start|come from|leave from)?\n(origin|departure)\n!where does it begin?")
LIVES = Phrases("{p} (lives|works|was born|studies) in {c}\n{p} (is|comes) from {c}\n{p}: {c}\nthe home of {p} is {c}\n!in {c} {p} is at home")
WHERE = Phrases("where (does|is) {p} (live|from|at home)?\n(which|what) (city|place) (does|is) {p} (live in|from)?\n!which town is home to {p}?")


def places(world):
    if world.chance(0.5):
        a, b, c = world.slots.several("city", 3)
        state = texts.joined(world, [with_slots(world, TRIP, a=a, b=b)], 0.3)
        there = world.chance(0.6)
        names = [a, b, c] if world.chance(0.7) else [a, b]
        return state, [asking.choice(world, asked(world, DESTINATION if there else ORIGIN), options_of(names), b if there else a, 0.02)]
    count = world.rng.randint(1, 3)
    people, cities = world.slots.several("person", count), world.slots.several("city", count + 2)
    state = texts.joined(world, [with_slots(world, LIVES, p=p, c=c) for p, c in zip(people, cities)], 0.3)
    at = world.rng.randrange(count)
    extra = cities[: world.pick([count, count + 1, count + 2])] if count > 1 else cities
    return state, [asking.choice(world, asked(world, WHERE, p=people[at]), options_of(extra), cities[at], 0.02)]


EVENTS = parted({"train": ("meeting|dinner|exam|concert|training|delivery|interview|party|call|workshop|appointment|lesson|report|deadline|test|presentation|wedding|lecture|"
          "seminar|excursion|examination|festival|race|match|opening|conference|session|trial|visit|tour|repair|launch|election|ceremony|breakfast|lunch|audit|"
          "holiday|funfair|sale|reception|course|trip|transport|removal|vaccination|drill|walk|game|show|assembly|briefing|demonstration|film|reading|dance").split("|"),
          "test": "rehearsal|inspection|auction|picnic|hearing|parade|webinar|fitting".split("|")})  # fmt: skip
EVENT_WHEN = Phrases("the {e} is (on|due on) {w}\n{e}: {w}\nthe {e} (takes place|happens) on {w}\nwe have the {e} on {w}\n!{w} is the day of the {e}")
EVENT_MOVED = Phrases("the {e} (has been|was|is) moved from {v} to {w} ({r}|)\nthe {e} is not on {v} but on {w} ({r}|)\nwe moved the {e} to {w}, (it was|originally) {v} ({r}|)\n(instead of|not) {v}, the {e} is on {w} ({r}|)\nthe {e} was planned for {v}, now it's {w} ({r}|)\n!{v} is off, the {e} waits until {w} ({r}|)")
WHEN = Phrases("(when|on which day) is the {e} (now|)?\n(what|which) day is the {e}?\ndate of the {e}\n!for which day is the {e} set?")
REASONS = parted({
    "train": [("someone is ill", "because {person} is ill"), ("the room is taken", "because the room is not free"), ("bad weather", "because of the snow"),
              ("a strike", "due to a strike"), ("a holiday", "because it is a holiday"), ("no money", "because there is no money"),
              ("a technical fault", "because the projector broke"), ("too few people", "because only two people signed up"),
              ("the boss is away", "as the manager is travelling"), ("the train is late", "since the train has not arrived"), ("a death in the family", "because {person}'s uncle died"),
              ("the material is missing", "because the paper was not delivered"), ("another event", "because of the football match"), ("a broken car", "since the car would not start"),
              ("an accident", "because there was a crash on the road"), ("building work", "because they are repairing the floor"), ("no staff", "as nobody could serve"),
              ("flood", "due to high water"), ("heat", "because it is far too hot"), ("a mistake in the calendar", "because somebody wrote down the wrong date"),
              ("a computer failure", "since the computers are down"), ("the speaker cancelled", "because {person} cannot speak"), ("more time is needed", "because we are not ready yet"),
              ("a wish of the guests", "because the guests asked for it"), ("a storm warning", "because of the wind"), ("illness among the staff", "since half of the team has flu")],
    "test": [("a funeral", "since there is a funeral"), ("a power cut", "as the power was off"), ("roadworks", "owing to roadworks"), ("an election", "on account of the election")],
})  # fmt: skip
WHY = Phrases("why (was|is) (it|the {e}) moved?\n(what is the reason|the reason) (for the change|)?\nwhat reason is given?\n!what brought the change about?")


def events(world):
    own = EVENTS[world.split]
    days = world.sample(DAYS, 4)
    if world.chance(0.25):
        days = [f"{h}:{m}" for h, m in zip(world.sample(range(6, 22), 4), world.sample(["00", "15", "30", "45"], 4))]
    if world.chance(0.5):
        event = world.pick(own)
        reason_name, reason = world.pick(REASONS[world.split])
        text = with_slots(world, EVENT_MOVED, e=event, v=days[0], w=days[1], r=reason)
        state = texts.joined(world, [text], 0.25)
        names = days[: world.pick([2, 3, 4])]
        questions = [asking.choice(world, asked(world, WHEN, e=event), options_of(names), days[1], 0.02)]
        if reason.split("{")[0].strip() in text or world.slots.kept.get(("person", False), "\0") in text and "{person}" in reason:
            others = [r for r, _ in world.sample([x for x in REASONS[world.split] if x[0] != reason_name], 2)]
            questions.append(asking.choice(world, asked(world, WHY, e=event), options_of([reason_name, *others]), reason_name, 0.03))
        return state, questions
    picked = world.sample(own, world.rng.randint(2, 3))
    state = texts.joined(world, [with_slots(world, EVENT_WHEN, e=e, w=d) for e, d in zip(picked, days)], 0.2)
    at = world.rng.randrange(len(picked))
    return state, [asking.choice(world, asked(world, WHEN, e=picked[at]), options_of(days[: world.pick([len(picked), 4])]), days[at], 0.02)]


AGREE = parted({
    "train": ["ok, {x} then", "{x} is better for me", "let's take {x}", "{x} it is", "I prefer {x}", "{x} please", "{x} suits me", "yes, {x}"],
    "test": ["{x} sounds right to me", "make it {x}", "my vote goes to {x}"],
})
OFFER = parted({"train": ["{x} or {y}?", "shall we take {x} or {y}?", "what about {x}? or {y}?", "do you prefer {x} or {y}?", "{x}? {y}?"],
         "test": ["would {x} do, or rather {y}?", "pick one: {x}, {y}"]})  # fmt: skip
AGREED = Phrases("what (did they|was) (agree on|agreed|decide|chosen)?\nwhich (one|option) (is|was) (chosen|taken|agreed)?\nwhat do they (choose|take)?\n!on what did they settle?")
SURE = ["ok, see you", "great", "fine with me", "perfect", "done", "good"]


def agreement(world):
    """Two people choose one of two things."""
    kind = world.pick(["city", "product", "day", "time", "noun"])
    x, y = world.slots.several(kind, 2)
    a, b = world.slots.several("person", 2)
    right = world.pick([x, y])
    turns = [(a, world.pick(OFFER[world.split]).replace("{x}", x).replace("{y}", y)), (b, world.pick(AGREE[world.split]).replace("{x}", right))]
    if world.chance(0.5):
        turns.append((a, world.pick(SURE)))
    names = [x, y, *([world.slots.fresh(kind)] if world.chance(0.3) else [])]
    state = texts.conversation(world, [(who, texts.worn(world, text)) for who, text in turns])
    return state, [asking.choice(world, instructions(world, AGREED), options_of(dict.fromkeys(names)), right, 0.02)]


ASPECTS = parted({
    "train": {
        "food": ("the food was (delicious|excellent|fresh|tasty)|we loved every dish", "the food was (cold|bland|terrible|salty)|the meal made us sick"),
        "service": ("the (staff|service|waiter) was (friendly|quick|attentive|helpful)|they served us with a smile", "the (staff|service|waiter) was (rude|slow|unfriendly)|we waited an hour (for a table|to be served)"),
        "price": ("(good value|cheap|a fair price)|it (costs little|is worth the money)", "(far too expensive|overpriced)|it (costs too much|is not worth the money)"),
        "room": ("the room was (clean|big|quiet|cosy)|a lovely room", "the room was (dirty|tiny|noisy|smelly)|our room had (bugs|mould)"),
        "location": ("(great|perfect|central) location|close to (the beach|the station|everything)", "(bad|terrible) location|far from (everything|the centre)"),
        "battery": ("the battery lasts (long|two days|forever)|great battery", "the battery (dies fast|is empty by noon|lasts only two hours)|bad battery"),
        "screen": ("the (screen|display) is (bright|sharp|beautiful)|a gorgeous picture", "the (screen|display) is (dim|scratched|blurry)|the picture flickers"),
        "sound": ("the sound is (clear|rich|great)|it sounds wonderful", "the sound is (tinny|distorted|too quiet)|it sounds awful"),
        "comfort": ("very comfortable|(it fits|they fit) like a glove", "very uncomfortable|it (hurts|pinches) after an hour"),
        "delivery": ("(fast|quick) delivery|it came the next day", "(slow|late) delivery|it took three weeks to arrive"),
        "quality": ("(solid|good|great) quality|well made", "(poor|bad|cheap) quality|it feels flimsy"),
        "plot": ("a gripping (plot|story)|the story kept me awake", "a boring (plot|story)|the story makes no sense"),
        "design": ("a beautiful design|it looks (lovely|elegant|great)", "an ugly design|it looks (cheap|old)"),
        "breakfast": ("the breakfast was (great|rich|varied)|plenty of choice at breakfast", "the breakfast was (poor|cold|monotonous)|hardly anything at breakfast"),
        "camera": ("the camera takes (sharp|great) pictures|wonderful photos", "the camera is (blurry|bad|slow)|the photos are dark"),
        "cleanliness": ("everything was (clean|spotless)|very clean", "it was (dirty|filthy)|dust and stains everywhere"),
        "support": ("(helpful|quick) support|the support answered at once", "(useless|slow) support|the support never answered"),
        "size": ("the size is (right|perfect)|it fits well", "the size is wrong|it is (too small|too big)"),
        "view": ("the view is (breathtaking|splendid)|from the window one sees the sea", "the view is (dull|blocked)|from the window one sees a wall"),
        "music": ("the music (moves|delights)|wonderful tunes", "the music is (shrill|tiresome)|awful tunes"),
        "staff": ("the staff were (kind|courteous|obliging)|friendly people everywhere", "the staff were (unkind|grumpy|impolite)|nobody cared for us"),
        "bed": ("the bed was (soft|cosy)|we slept like stones", "the bed was (hard|creaky|narrow)|we hardly slept"),
        "app": ("the app is (handy|simple|stable)|the app does all I need", "the app is (confusing|full of bugs)|the app crashes daily"),
        "engine": ("the engine is (quiet|strong)|plenty of power", "the engine is (weak|loud)|hardly any power"),
        "smell": ("it smells (fresh|pleasant|of flowers)|a fine scent", "it (stinks|reeks)|a nasty smell"),
        "instructions": ("the instructions are (clear|easy)|set up in minutes", "the instructions are (unclear|missing)|nobody can understand the manual"),
        "packaging": ("(neatly|carefully) packed|the packaging was sturdy", "(badly|carelessly) packed|the packaging was torn"),
        "atmosphere": ("a (warm|relaxed|charming) atmosphere|we felt at home", "a (cold|gloomy|tense) atmosphere|we felt out of place"),
        "portions": ("(generous|large) portions|nobody left hungry", "(tiny|mean) portions|we left hungry"),
        "teacher": ("the teacher explains (well|patiently)|a gifted teacher", "the teacher explains (badly|nothing)|a lazy teacher"),
        "wifi": ("(fast|stable) wifi|the internet works everywhere", "(no|weak|slow) wifi|the internet fails all the time"),
        "speed": ("it is (fast|quick as lightning)|it reacts at once", "it is (slow|sluggish)|it takes ages"),
        "ending": ("a (moving|clever) ending|the end surprised me", "a (weak|silly) ending|the end spoils it"),
        "weight": ("it is (light|easy to carry)|hardly any weight", "it is (heavy|hard to carry)|it weighs too much"),
        "fabric": ("(soft|fine|warm) fabric|it feels good on the skin", "(rough|thin|scratchy) fabric|it itches"),
        "pool": ("the pool is (clean|warm|big)|the children loved the pool", "the pool is (dirty|icy|closed)|nobody could use the pool"),
        "shower": ("the shower is (hot|strong)|a great shower", "the shower is (cold|leaking)|only a trickle from the shower"),
    },
    "test": {
        "acting": ("the acting is (great|wonderful|superb)|they play well", "the acting is (bad|terrible|poor)|they play badly"),
        "coffee": ("the coffee is (excellent|tasty|great)|lovely coffee", "the coffee is (cold|terrible|bland)|awful coffee"),
        "keyboard": ("the keyboard is (great|comfortable)|typing is a joy", "the keyboard is (bad|flimsy|cheap)|typing is a pain"),
        "garden": ("the garden is (beautiful|lovely)|a gorgeous garden", "the garden is (dirty|ugly)|the garden was awful"),
        "parking": ("(good|free) parking|parking was easy", "(bad|expensive) parking|parking was terrible"),
        "taste": ("it tastes (wonderful|great)|a lovely taste", "it tastes (awful|bland)|a disgusting taste"),
        "steering": ("the steering is (perfect|smooth)|it steers well", "the steering is (terrible|poor)|it steers badly"),
    },
})  # fmt: skip
THINK = Phrases("what does the (reviewer|author|guest|customer) think of the {a}?\n(how is|opinion on) the {a}?\n(sentiment|opinion|rating) (of|on|about) the {a}\n{a}\n!what verdict is given on the {a}?")
LIKES = Phrases("is the (reviewer|author|guest|customer) (happy|satisfied|pleased) with the {a}?\n(does|did) the (reviewer|author|guest) like the {a}?\nis the {a} (good|praised)?\n!does the {a} find favour?")
FAULTS = Phrases("does the (reviewer|author|guest|customer) (criticise|complain about) the {a}?\nis the {a} (bad|criticised)?\n!is the {a} faulted?")
DISLIKED = Phrases("(which|what) (part|aspect|) does the (reviewer|author|guest) (dislike|criticise)?\nwhat is (bad|criticised)?\nwhat is the weak point?\n!what falls short?")
LIKED = Phrases("(which|what) (part|aspect|) does the (reviewer|author|guest) (like|praise)?\nwhat is (good|praised)?\nwhat is the strong point?\n!what shines?")
GOOD_BAD = [("good", "bad"), ("positive", "negative"), ("happy", "unhappy"), ("praise", "criticism"), ("satisfied", "dissatisfied")]
ABSENT = ["not mentioned", "not stated", "no opinion", "nothing said"]


def review(world):
    aspects = ASPECTS[world.split]
    names = world.sample(sorted(aspects), world.rng.randint(1, min(4, len(aspects) - 1)))
    good = [world.chance(0.5) for _ in names]
    lines = [fill(world.pick(pick_of(aspects[n][0 if g else 1])), world.rng, world.slots) for n, g in zip(names, good)]
    if world.chance(0.5) and len(lines) > 1:
        text = lines[0]
        for i in range(1, len(lines)):
            text += (world.pick([" and ", ", "]) if good[i] == good[i - 1] else world.pick([" but ", ", but ", ", although ", ". However, "])) + lines[i]
        text = texts.worn(world, texts.sentence(world, text))
    else:
        text = texts.joined(world, lines, 0.15)
    questions = []
    at = world.rng.randrange(len(names))
    absent_names = [n for n in sorted(aspects) if n not in names]
    clear = {"quality", "design", "comfort", "size", "cleanliness", "room", "taste"}
    label = world.pick(GOOD_BAD)
    if world.chance(0.25):
        absent = world.pick([n for n in absent_names if n not in clear] or absent_names)
        void = world.pick(ABSENT)
        questions.append(asking.choice(world, asked(world, THINK, a=absent), options_of([*label, void]), void, 0.04))
    else:
        void = [world.pick(ABSENT)] if world.chance(0.6) else []
        questions.append(asking.choice(world, asked(world, THINK, a=names[at]), options_of([*label, *void]), label[0 if good[at] else 1], 0.03))
    at = world.rng.randrange(len(names))
    likes = world.chance(0.6)
    questions.append(asking.noul(asked(world, LIKES if likes else FAULTS, a=names[at]), 0.97 if good[at] == likes else 0.03))
    for wanted, phrases in ((False, DISLIKED), (True, LIKED)):
        if good.count(wanted) == 1 and len(names) > 1 and world.chance(0.6):
            article = world.pick(["", "the "])
            extra = world.sample(absent_names, 1) if world.chance(0.3) else []
            options = options_of([article + n for n in [*names, *extra]])
            questions.append(asking.choice(world, instructions(world, phrases), options, article + names[good.index(wanted)], 0.03))
    if all(good) or not any(good):
        questions.append(asking.choice(world, world.pick(["Sentiment", "What is the overall impression?", "Is the review positive or negative?"]), options_of(["positive", "negative"]), "positive" if good[0] else "negative", 0.02))
    elif world.chance(0.5):
        questions.append(asking.choice(world, world.pick(["Sentiment", "What is the overall impression?"]), options_of(["positive", "negative", "mixed"]), "mixed", 0.1))
    return texts.wrapped(world, text, plain=0.8), questions


def pick_of(text):
    """Alternatives at the outermost level."""
    parts, depth, start = [], 0, 0
    for i, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == "|" and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [*parts, text[start:]]


IS = Phrases("the {x} is {w}\nthe {x} seems {w}\nthe {x} was {w} (today|yesterday|this morning|)\nthe {x}: {w}\nI find the {x} {w}\n!as for the {x}, {w} is the word")
IS_NOT = Phrases("the {x} is not {w}\nthe {x} isn't {w}\nthe {x} is anything but {w}\n!nobody would call the {x} {w}")
ASK_IS = Phrases("is the {x} {w}?\nis it true that the {x} is {w}?\ndoes the text say that the {x} is {w}?\nwould you say the {x} is {w}?\n!may one call the {x} {w}?")
WHICH_IS = Phrases("(which|what) (thing|one|) is {w}?\nwhich of them is {w}?\n!what can be called {w}?")
ADJECTIVES = [pair for pair in SYNONYMS if pair[1] and all(len(w.split()) < 3 for w in pair[0][:1])][:40]


def states_of_things(world):
    """Things with properties; asked with the same word, a synonym or the contrary."""
    count = world.rng.randint(1, 3)
    things = world.slots.several("noun", count + 1)
    picked = world.sample(ADJECTIVES, count)
    lines, facts = [], []
    for thing, (words, contrary) in zip(things, picked):
        first = world.chance(0.5)
        own, other = (words, contrary) if first else (contrary, words)
        if world.chance(0.25):
            lines.append(with_slots(world, IS_NOT, x=thing, w=world.pick(other)))
        else:
            lines.append(with_slots(world, IS, x=thing, w=world.pick(own)))
        facts.append((thing, own, other))
    state = texts.joined(world, lines, 0.2)
    thing, own, other = world.pick(facts)
    yes = world.chance(0.5)
    questions = [asking.noul(asked(world, ASK_IS, x=thing, w=world.pick(own if yes else other)), 0.96 if yes else 0.04)]
    if count > 1:
        thing, own, _ = world.pick(facts)
        questions.append(asking.choice(world, asked(world, WHICH_IS, w=world.pick(own)), options_of([f[0] for f in facts]), thing, 0.03))
    if world.chance(0.12):
        unknown = asked(world, ASK_IS, x=things[-1], w=world.pick(world.pick(ADJECTIVES)[0]))
        questions.append(asking.noul(unknown, 0.5 if "does the text say" not in unknown.lower() else 0.05))
    return state, questions


SAME = Phrases("(do|does) (\"{a}\"|{a}) and (\"{b}\"|{b}) mean (the same|about the same)?\nis {a} another word for {b}?\nare {a} and {b} synonyms?\n!could {b} stand in place of {a}?")
CLOSEST = Phrases("(which|what) (word|expression|) (is closest in meaning to|means the same as|is a synonym of) {a}?\nsynonym of {a}\nwhich (word|) could replace {a}?\n!find a twin of {a} among these.")
CONTRARY = Phrases("(which|what) is the (contrary|opposite) of {a}?\nopposite of {a}\n!what turns {a} into its reverse?")
TOPIC_OF = Phrases("(which|what) (topic|subject|field|area) (do|does) (this|the words|the text) belong to?\nwhat (is this|are these words) about?\n(topic|field|subject)\nwhat do (these|the words) have in common?\n!under which heading would you put this?")
BELONGS = Phrases("is (a |){w} (part of|an example of|something from) {t}?\n{w}: {t}?\ndoes {w} belong to {t}?\ndoes {w} have to do with {t}?\n!would you look for {w} under {t}?")
ODD = Phrases("which (word|one) does not (fit|belong)?\n(find the odd one out|odd one out)\n!which of these is out of place?")
WORD_LINES = Phrases("{l}\nwords: {l}\n(they spoke|we talked|an article|a book|a talk) about {l}\nI saw {l}\nthere was {l}\nnotes: {l}\nshe mentioned {l}\n!the page dealt with {l}")


def lexical(world):
    """Meanings of single words."""
    roll = world.rng.random()
    if roll < (0.45 if world.split == "train" else 0.3):
        known = THESAURUS if world.split == "train" and world.chance(0.75) else SYNONYMS
        words, contrary = world.pick(known)
        a = world.pick(words)
        others = [w for w in words if w != a]
        far = [world.pick(world.pick(known)[0]) for _ in range(3)]
        kind = world.pick(["same", "closest", "contrary"]) if contrary else world.pick(["same", "closest"])
        state = world.pick(["", "", a, f"word: {a}"])
        if kind == "contrary":
            right = world.pick(contrary)
            options = [right, *([world.pick(others)] if others and world.chance(0.5) else []), *far[:2]]
            return state, [asking.choice(world, asked(world, CONTRARY, a=a), options_of(dict.fromkeys(options)), right, 0.03)]
        if not others:
            return state, [asking.noul(asked(world, SAME, a=a, b=world.pick(far)), 0.05)]
        if kind == "closest":
            right = world.pick(others)
            options = [right, *([world.pick(contrary)] if contrary and world.chance(0.5) else []), *[f for f in far if f not in words]]
            return state, [asking.choice(world, asked(world, CLOSEST, a=a), options_of(dict.fromkeys(options)), right, 0.03)]
        yes = world.chance(0.5)
        b = world.pick(others) if yes else world.pick(contrary or far)
        if b in words and not yes:
            yes = True
        return state, [asking.noul(asked(world, SAME, a=a, b=b), 0.96 if yes else 0.04)]
    names, words = world.pick(WORDS)
    others = [t for t in WORDS if t[0] is not names]
    if roll < 0.42:
        odd_topic = world.pick(others)
        odd = world.pick([w for w in odd_topic[1] if w not in words] or ["nothing"])
        shown = world.sample(words, 3)
        return "", [asking.choice(world, asked(world, ODD), options_of([*shown, odd]), odd, 0.08)]
    if roll < 0.6:
        yes = world.chance(0.5)
        word = world.pick(words) if yes else world.pick(world.pick(others)[1])
        if word in words:
            yes = True
        text = asked(world, BELONGS, w=word, t=world.pick(names))
        return world.pick(["", word]), [asking.noul(text, 0.94 if yes else 0.05)]
    shown = world.sample(words, world.pick([1, 2, 2, 3, 4, 5]))
    listed = ", ".join(shown) if world.chance(0.6) else " and ".join(shown)
    state = texts.worn(world, with_slots(world, WORD_LINES, l=listed))
    wrong = [t for t in world.sample(others, world.pick([1, 2, 3, 4, 5])) if not set(shown) & set(t[1])]
    describe = world.chance(0.3)
    options = {}
    for topic, its_words in [(names, words), *wrong]:
        examples = ", ".join(world.sample([w for w in its_words if w not in shown] or its_words, 3))
        options[world.pick(topic)] = examples if describe else None
    right = next(iter(options))
    return texts.wrapped(world, state, plain=0.9), [asking.choice(world, instructions(world, TOPIC_OF), options, right, 0.04)]


WHICH_LANGUAGE = Phrases("(which|what) language is (this|it|the text|the message) (written in|in|)?\n(language|language of the text|detect the language|identify the language)\nin which language is this (written|)?\n!which tongue is spoken here?")
IS_LANGUAGE = Phrases("is (this|it|the text|the message) (in|written in) {l}?\n{l}?\n!is this a text of {l}?")
FOREIGN_ABOUT = Phrases("what is (the message|it|this) about?\nwhat is the (problem|topic|issue)?\nwhat does the (customer|writer) want?\n(topic|intent|category)\n!which concern is voiced?")
FOREIGN_MOOD = Phrases("(what is the|) sentiment?\nis the (text|review|message) positive or negative?\n(opinion|tone)\n!what verdict is reached?")
FOREIGN_HAPPY = Phrases("is the (customer|writer|author) (satisfied|happy|content)?\nis (this|it) positive?\n!did it go down well?")
FOREIGN_NAMES = {
    "late delivery": ["delivery", "late delivery", "shipping", "where the order is", "delivery problem"], "refund": ["refund", "money back", "payment back", "wants a refund"],
    "password": ["login", "password", "forgotten password", "account access"], "cancel subscription": ["cancel", "cancellation", "end of contract", "cancel subscription"],
    "damaged item": ["damaged item", "broken", "broken on arrival", "damage"],
}  # fmt: skip
NATIVE = {
    "German": ("Was will der Kunde?", {"late delivery": "Lieferung", "refund": "Rückerstattung", "password": "Passwort", "cancel subscription": "kündigen", "damaged item": "beschädigt"}, ("Stimmung", "positiv", "negativ")),
    "Spanish": ("¿Qué quiere el cliente?", {"late delivery": "entrega", "refund": "reembolso", "password": "contraseña", "cancel subscription": "cancelar", "damaged item": "dañado"}, ("Sentimiento", "positivo", "negativo")),
    "French": ("Que veut le client ?", {"late delivery": "livraison", "refund": "remboursement", "password": "mot de passe", "cancel subscription": "résilier", "damaged item": "cassé"}, ("Sentiment", "positif", "négatif")),
    "Portuguese": ("Qual é o pedido do cliente?", {"late delivery": "entrega", "refund": "reembolso", "password": "senha", "cancel subscription": "cancelamento", "damaged item": "danificado"}, ("Sentimento", "positivo", "negativo")),
    "Italian": ("Che cosa vuole il cliente?", {"late delivery": "consegna", "refund": "rimborso", "password": "password", "cancel subscription": "disdetta", "damaged item": "rotto"}, ("Sentimento", "positivo", "negativo")),
    "Chinese": ("客户想要什么？", {"late delivery": "配送", "refund": "退款", "password": "密码", "cancel subscription": "取消", "damaged item": "损坏"}, ("情感", "正面", "负面")),
    "Japanese": ("お客様の要望は何ですか。", {"late delivery": "配達", "refund": "返金", "password": "パスワード", "cancel subscription": "解約", "damaged item": "破損"}, ("感情", "肯定", "否定")),
    "Russian": ("Что хочет клиент?", {"late delivery": "доставка", "refund": "возврат", "password": "пароль", "cancel subscription": "отмена", "damaged item": "повреждение"}, ("Тон", "положительный", "отрицательный")),
}  # fmt: skip


def foreign(world):
    language = world.pick(LANGUAGES)
    kinds = list(language.kinds)
    kind = world.pick(kinds)
    parts = [world.say(language.kinds[kind])]
    if world.chance(0.3) and not kind.startswith("sentiment"):
        parts.append(world.say(language.kinds["statement"]))
    state = texts.wrapped(world, texts.worn(world, " ".join(parts)), plain=0.8)
    questions = []
    wrong = world.sample([x for x in LANGUAGES if x is not language], world.pick([1, 2, 3, 4, 5]))
    if world.chance(0.55) or kind in ("question", "statement"):
        if world.chance(0.7):
            options, chosen = asking.named(world, [language, *wrong], "names")
            questions.append(asking.choice(world, instructions(world, WHICH_LANGUAGE), options, chosen[language.key], 0.01))
        else:
            yes = world.chance(0.5)
            name = world.say((language if yes else wrong[0]).names)
            questions.append(asking.noul(asked(world, IS_LANGUAGE, l=name), 0.97 if yes else 0.03))
    native = NATIVE.get(language.key) if world.chance(0.2) else None
    if kind in FOREIGN_NAMES:
        others = world.sample([k for k in FOREIGN_NAMES if k != kind], world.pick([1, 2, 3]))
        if native:
            options = {native[1][k]: None for k in [kind, *others]}
            questions.append(asking.choice(world, native[0], options, native[1][kind], 0.02))
        else:
            options = {world.pick(FOREIGN_NAMES[k]): None for k in [kind, *others]}
            questions.append(asking.choice(world, instructions(world, FOREIGN_ABOUT), options, next(iter(options)), 0.02))
        if world.chance(0.3):
            asked_kind = kind if world.chance(0.5) else others[0]
            name = {"refund": "want a refund", "cancel subscription": "want to cancel", "password": "have a login problem",
                    "late delivery": "wait for a delivery", "damaged item": "report something broken"}[asked_kind]  # fmt: skip
            questions.append(asking.noul(f"Does the {world.pick(['customer', 'writer'])} {name}?", 0.97 if asked_kind == kind else 0.03))
    if kind.startswith("sentiment"):
        good = kind.endswith("+")
        if native:
            questions.append(asking.choice(world, native[2][0], options_of(native[2][1:]), native[2][1 if good else 2], 0.02))
        elif world.chance(0.5):
            questions.append(asking.choice(world, instructions(world, FOREIGN_MOOD), options_of(["positive", "negative"]), "positive" if good else "negative", 0.02))
        else:
            questions.append(asking.noul(asked(world, FOREIGN_HAPPY), 0.97 if good else 0.03))
    return state, questions


NOTHING = Phrases("(which|what) colour is the {x}?\nwho owns the {x}?\nwhat is the name of the {x}?\nwhere is the {x}?\n!to whom was the {x} sold?")
PERHAPS = Phrases("will the {x} be sold?\nis the {x} heavy?\ndoes {person} own the {x}?\nwas the {x} built in summer?\n!has the {x} been insured?")


def unknowable(world):
    """Nothing in the state says: the answer is that all options are alike."""
    thing = world.slots.fresh("noun")
    state = texts.joined(world, [world.say(texts.FILLER)], 0.5)
    if world.chance(0.5):
        return state, [asking.noul(asked(world, PERHAPS, x=thing), 0.5)]
    names = world.pick([["red", "green", "blue", "black"], world.slots.several("person", 4), world.slots.several("city", 4)])[: world.pick([2, 3, 4])]
    names = [n for n in names if n.lower() not in str(state).lower()]
    if len(names) < 2:
        return state, [asking.noul(asked(world, PERHAPS, x=thing), 0.5)]
    return state, [asking.choice(world, asked(world, NOTHING, x=thing), options_of(names), {n: 1 / len(names) for n in names})]


IRONY = Phrases("(oh great|oh wonderful|how lovely|just what I needed|fantastic), (another|yet another) (delay|crash|bill|bug|broken {product}|update that breaks everything)\n(thanks a lot|bravo|well done) for (losing my parcel|ruining my day|charging me twice|deleting my files)\n(I just love|nothing better than) (waiting for hours|being on hold all day|paying for nothing|cold soup)\n!what a treat to be kept waiting until dark\n!splendid, the roof leaks once more")
REALLY = Phrases("is the (writer|customer|author) (really|truly) (happy|pleased|grateful)?\nis (this|it) meant as praise?\nis the (writer|customer) satisfied?\n!is the thanks sincere?")
IRONIC = Phrases("is (this|it) (sarcastic|ironic|irony|sarcasm)?\n!is it meant the other way round?")


def irony(world):
    if world.chance(0.65):
        text, ironic = world.say(IRONY), True
    else:
        from .lexicon import AXES, BY_KEY

        concept = world.pick([AXES["sentiment"].concepts[4], BY_KEY["praise"]])
        text, ironic = world.say(concept.phrases), False
    state = texts.joined(world, [text], 0.15)
    roll = world.rng.random()
    if roll < 0.4:
        return state, [asking.noul(asked(world, REALLY), 0.05 if ironic else 0.96)]
    if roll < 0.6:
        return state, [asking.noul(asked(world, IRONIC), 0.95 if ironic else 0.06)]
    return state, [asking.choice(world, instructions(world, FOREIGN_MOOD), options_of(["positive", "negative"]), "negative" if ironic else "positive", 0.05)]


SAYS = Phrases("does the text (say|state|mention) that {f}?\nis it (said|true) that {f}?\n{f}?\n!can one read here that {f}?")
NAMED = Phrases("(which|what) (name|word|product|place|person|thing) (is mentioned|appears|comes up|is in the text)?\n(who|what) is meant?\nwhich of these (appears|is named) in the text?\n!which of these stands in the text?")


def copying(world):
    """Which name stands in the text: nothing but the text can tell."""
    kind = world.pick(["person", "city", "company", "product", "noun"])
    names = world.slots.several(kind, world.rng.randint(2, 6))
    right = names[0]
    frame = world.pick(["we talked to {x} yesterday", "{x} is what I mean", "please ask about {x}", "I have heard of {x}", "it was {x}", "my question is about {x}",
                        "{x} called again", "the letter mentions {x}", "they chose {x} in the end", "nobody expected {x}"])  # fmt: skip
    if world.split == "test":
        frame = world.pick(["let us turn to {x}", "{x} came to mind at once", "all eyes are on {x}"])
    state = texts.joined(world, [frame.replace("{x}", right)], 0.3)
    shown = str(state).lower()
    names = [right] + [n for n in names[1:] if n.lower() not in shown]
    if len(names) < 2 or right.lower() not in shown:
        return unknowable(world)
    if world.chance(0.75):
        return texts.wrapped(world, state), [asking.choice(world, instructions(world, NAMED), options_of(names), right, 0.01)]
    name = world.pick(names)
    return texts.wrapped(world, state), [asking.noul(f"Is {name} mentioned?", 0.97 if name == right else 0.03)]
