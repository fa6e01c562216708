"""Messages about something: which concept or department, and what else stands in them."""

from . import asking, texts
from .grammar import Phrases
from .lexicon import AXES, CONCEPTS, TOPICS

WHICH_GROUP = Phrases("""
(which|what) (team|department|desk|group) should (handle|answer|take|get) (this|it|the message)?
(route|assign|forward) (this|the message|the ticket) (to the right (team|department)|).
who should (handle|answer|deal with) (this|it)?
department
team
which area does (this|the text|the message) belong to?
what is the main (topic|subject|area)?
(choose|pick|select) the (team|category|department).
category
where does this ticket go?
(which|what) (section|category|area) fits best?
!to whom shall this be handed?
!whose job is this?
!name the responsible unit.
""")
WHICH_CONCEPT = Phrases("""
what is (this|the text|the message|it) about?
(what|which) (kind|type|sort) of (problem|request|issue|message|text) is this?
what is the (topic|subject|issue|reason for writing|matter)?
(classify|categorise|label) (this|the text|the message|the event|the ticket).
(topic|category|intent|issue|subject|type|label)
(choose|pick|select) the best (category|topic|label|description).
what does the (customer|writer|sender|person|user|author) want?
what happened?
which (category|topic|label|intent) (fits|fits best|applies|is right)?
(why|for what reason) did (the customer|the person|somebody) write?
what is the (customer's|writer's|user's) (problem|issue|intent|concern)?
!sum up the concern in one label.
!which of the following matches the text?
!what is at stake here?
""")
JSON_WHICH = ["route", "classify", "topic", "intent", "category"]
ABOUT = Phrases("""
is (this|the text|the message|it) about {name}?
does (this|the text|the message|the ticket) concern {name}?
(topic|category|intent): {name}?
is {name} the (topic|issue|reason|subject|problem)?
does the (writer|customer|text|message) (mention|talk about|speak of) {name}?
would you file this under {name}?
{name}?
!is {name} what this deals with?
!has this to do with {name}?
""")
MENTIONS = {
    "money": Phrases("does the (text|message) (mention|contain|name) (a price|an amount of money|a sum of money|money)?\nis (an amount|a price|a sum) (mentioned|given|named)?\n!is a figure in a currency stated?"),
    "date": Phrases("does the (text|message) (mention|contain|name) a date?\nis a (calendar date|date) (mentioned|given)?\n!is a day of the calendar stated?"),
    "city": Phrases("does the (text|message) (mention|name) a (city|place|town)?\nis a (city|place|town) (mentioned|named)?\n!does a town come up?"),
    "order": Phrases("does the (text|message) (contain|mention|give) an order number?\nis there an order number?\n!is an order identified by number?"),
    "day": Phrases("does the (text|message) (mention|name) a day of the week?\nis a weekday (mentioned|named)?\n!does a weekday come up?"),
}  # fmt: skip
AXIS_WHICH = {
    "urgency": Phrases("how urgent is (this|it|the message|the request)?\n(urgency|priority)\nhow (soon|quickly|fast) must (this|it) be (done|handled|answered)?\n(rate|judge|assess) the (urgency|priority).\nwhat priority (does this have|should this get)?\n!how much of a hurry is there?\n!by when is a reaction due?"),
    "anger": Phrases("how (angry|upset|annoyed) is the (writer|customer|author)?\n(anger|mood|temper)\nrate the anger (of the writer|).\nwhat is the mood of the (customer|writer)?\n!how heated is the writer?\n!how worked up is this person?"),
    "politeness": Phrases("how polite is (this|the text|the writer|the message)?\n(politeness|tone|manners)\nrate the (politeness|courtesy).\nwhat is the tone (of the message|)?\n!how well-mannered is this?\n!judge the courtesy of the sender."),
    "emotion": Phrases("(what|which) (emotion|feeling) (is expressed|dominates|does the text show)?\nhow does the (writer|author|person) feel?\n(emotion|feeling|mood)\nwhat is the (main|) (emotion|mood|feeling)?\n!what goes on inside the writer?\n!which mood speaks from this?"),
    "severity": Phrases("(rate|judge|assess) the severity (of the problem|of the incident|).\nhow (bad|serious|severe) is (it|this|the problem|the incident)?\n(severity|impact)\nwhat is the impact?\n!how grave is the incident?\n!how much harm is done?"),
    "medical urgency": Phrases("how urgent is (medical help|it|the case|a doctor)?\n(triage|urgency|medical urgency)\nhow soon (should|must) a doctor (see|look at) (this|the person)?\n!how quickly is a physician needed?\n!order this case by need."),
    "toxicity": Phrases("how (toxic|insulting|hostile|offensive) is (this|the comment|the text)?\n(toxicity|hostility|moderation)\nrate the (toxicity|hostility) (of the comment|).\n!how spiteful are these words?\n!judge how much abuse is in it."),
    "resolution": Phrases("(what is the|) (status|outcome) (of the problem|of the ticket|)?\n(is|was) the (problem|issue) (solved|resolved)?\nhow did it end?\n!in what state is the case?\n!did it come to a good end?"),
    "speech act": Phrases("what (kind|type|sort) of (sentence|utterance|message) is (this|it)?\nwhat does the (speaker|writer) do?\n(speech act|kind of sentence|type)\n(classify|label) the (sentence|utterance|message).\n!what do these words do?\n!of which nature is the utterance?"),
    "stance": Phrases("(what is|) the (stance|opinion|position) (of the writer|)?\nis the writer for or against (it|the plan)?\n(stance|opinion)\nwhere does the (writer|author) stand?\n!which side does the writer take?\n!how would this person vote?"),
    "sentiment": Phrases("what is the (sentiment|tone|attitude|overall impression)?\n(sentiment|rating|opinion|stars)\nhow (satisfied|happy|pleased) is the (author|reviewer|customer|guest|writer)?\nhow many stars (would|does) the (author|reviewer|customer) give?\n(rate|judge) the (satisfaction|review).\nis the review positive or negative?\n!how well did they like it?\n!what verdict does the author reach?"),
}  # fmt: skip
# (question, levels that mean yes, levels that mean no); the levels between get no such question.
AXIS_NOULS = {
    "urgency": [(Phrases("is (this|it|the request|the message) urgent?\ndoes it have to be done today?\nis (quick|fast) action needed?\nmust we (hurry|act quickly)?\n!is haste called for?"), (2, 3), (0,)),
                (Phrases("can (this|it) wait?\nis there (time|no hurry)?\n!may we take our time?"), (0,), (2, 3))],
    "anger": [(Phrases("is the (customer|writer|author|sender) (angry|upset|furious|mad)?\ndoes the (text|message) show anger?\nangry?\n!has the writer lost his temper?"), (2, 3), (0,)),
              (Phrases("is the (customer|writer) (calm|relaxed|friendly)?\n!does the writer keep his composure?"), (0,), (2, 3)),
              (Phrases("does the (customer|writer) threaten (to leave|with a lawyer|us)?\n!are threats made?"), (3,), (0, 1))],
    "politeness": [(Phrases("is the (writer|message|customer|text) polite?\nare they (polite|courteous)?\n!does the sender show good manners?"), (2,), (0,)),
                   (Phrases("is the (writer|message|text) (rude|impolite|disrespectful)?\n!are manners lacking here?"), (0,), (1, 2))],
    "severity": [(Phrases("is (this|it) (serious|severe|a serious problem|a major incident)?\ndo many people suffer from it?\n!is this a grave matter?"), (2, 3), (0, 1)),
                 (Phrases("should somebody be woken up at night (for this|)?\nis this an (emergency|outage)?\n!do we have a catastrophe?"), (3,), (0, 1)),
                 (Phrases("is (this|it) (harmless|negligible|only cosmetic)?\n!is hardly any harm done?"), (0,), (2, 3))],
    "medical urgency": [(Phrases("is (this|it) an emergency?\n(should|must) (we|somebody) call an ambulance?\nis the life of the person in danger?\n!is every minute precious?"), (3,), (0, 1)),
                        (Phrases("can (this|it|the person) wait (for weeks|some weeks|)?\n!would a visit next month do?"), (0, 1), (3,))],
    "toxicity": [(Phrases("is (this|the comment|the text|it) (toxic|insulting|offensive|abusive)?\nshould the comment be (removed|hidden|deleted)?\ndoes it insult (somebody|people)?\n!are these words meant to hurt?"), (1, 2), (0,)),
                 (Phrases("is somebody threatened?\nis (this|it) a threat?\n!is violence announced?"), (2,), (0,)),
                 (Phrases("is (this|the comment) (acceptable|civil|respectful)?\n!does this keep to decent words?"), (0,), (1, 2))],
    "sentiment": [(Phrases("is the (author|reviewer|customer|guest|writer) (satisfied|happy|pleased|content)?\nis (this|the review|it) positive?\ndoes the (author|reviewer|writer) (like|recommend) it?\nwould they (buy it|come) again?\n!did it go down well with the writer?"), (3, 4), (0, 1)),
                  (Phrases("is (this|the review|it) negative?\nis the (customer|author|reviewer) (unhappy|disappointed|dissatisfied)?\nis this a complaint?\n!does the writer find fault?"), (0, 1), (3, 4))],
}  # fmt: skip
MEMBER_NOULS = {
    "resolution": {"solved": Phrases("(is|was|has) the (problem|issue|case) (been|) (solved|resolved|fixed)?\ncan the ticket be closed?\ndoes it work now?\n!may we shelve the case?"),
                   "not solved": Phrases("is the problem still there?\nis (more|further) (help|work) needed?\n!does the trouble go on?"), },
    "speech act": {"question": Phrases("is (this|it) a question?\ndoes the (writer|speaker) ask something?\n!is an answer awaited?"),
                   "promise": Phrases("is something promised?\ndoes the (writer|speaker) promise (something|to do something)?\ndid (they|the speaker) commit to something?\n!is a pledge made?"),
                   "request": Phrases("is somebody asked to do something?\ndoes the writer want others to act?\n!is a favour wanted?"),
                   "apology": Phrases("does the (writer|speaker) (apologise|say sorry)?\nis (this|it) an apology?\n!is regret shown?"),
                   "refusal": Phrases("does the (writer|speaker) (refuse|say no|decline)?\n!is it turned down?"),
                   "thanks": Phrases("does the (writer|speaker) (thank somebody|say thank you|express thanks)?\n!is gratitude voiced?")},
    "stance": {"in favour": Phrases("is the writer (for it|in favour|in favour of the plan)?\ndoes the writer agree?\n!does the plan please the writer?"),
               "against": Phrases("is the writer (against it|opposed)?\ndoes the writer (disagree|object)?\n!is the writer hostile to the plan?")},
    "emotion": {"joy": Phrases("is the (writer|person) (happy|glad)?\n!is the writer in high spirits?"), "sadness": Phrases("is the (writer|person) (sad|unhappy)?\n!is the writer low?"),
                "fear": Phrases("is the (writer|person) (worried|afraid|anxious|nervous)?\n!does the writer dread something?"), "anger": Phrases("is the (writer|person) (angry|annoyed)?\n!is the writer cross?"),
                "gratitude": Phrases("is the (writer|person) (thankful|grateful)?\n!does the writer feel indebted?"), "boredom": Phrases("is the (writer|person) bored?\n!does time drag for the writer?")},
}  # fmt: skip
REFUND = Phrases("does the (customer|writer) want (a refund|the money back|their money back)?\nis a refund (asked for|requested|demanded)?\n!shall money be returned?")
CANCEL = Phrases("does the (customer|writer) want to (cancel|end the contract|leave)?\nis (this|it) a cancellation?\n!shall the contract end?")
SPAMLIKE = Phrases("is (this|it|the message) (spam|junk|unwanted advertising)?\nspam?\n!does this belong in the junk folder?")
PHISHLIKE = Phrases("is (this|it|the message) (phishing|a scam|fraud|an attempt at fraud)?\ndoes (this|it|somebody) try to steal (data|passwords|money)?\n!is bait laid out here?")
INJECTION = Phrases("does (this|the text|it) try to (manipulate|trick|change) (the system|the assistant|the instructions)?\nis (this|it) (an attempt to manipulate|prompt injection)?\n!are orders smuggled in here?")
PRIVATE = Phrases("does (this|the text|the message) (contain|reveal|hold) (personal data|private data|payment details|sensitive data)?\nis (personal|private) information (given|shared|revealed)?\n!should parts be blacked out?")
IS_ERROR = Phrases("(is|was) (this|there|it) an error?\ndoes (this|the line|the log) (report|show) (an error|a problem|a failure)?\ndid something (fail|go wrong)?\n!has anything gone amiss?")
ACTION = Phrases("is (action|intervention) (needed|required)?\nshould (somebody|an operator|a person) (look at this|act|do something)?\n!must a human step in?")
SUCCEEDED = Phrases("did (it|the job|the backup) (succeed|work|finish|go well)?\nwas (it|the job) successful?\n!did all go to plan?")
BAD_EVENTS = {"out of memory", "disk full", "connection failed", "server error", "slow response", "cpu load", "backup failed", "certificate", "brute force", "malware"}
GOOD_EVENTS = {"login event", "backup done", "deployment", "normal operation"}
SPECIAL = [(REFUND, {"refund"}, None), (CANCEL, {"cancel subscription"}, None), (SPAMLIKE, {"spam"}, {"phishing", "advertisement"}),
           (PHISHLIKE, {"phishing"}, {"spam", "brute force"}), (INJECTION, {"prompt injection"}, None), (PRIVATE, {"personal data"}, {"phishing", "data leak"}),
           (IS_ERROR, BAD_EVENTS, None), (ACTION, BAD_EVENTS, None), (SUCCEEDED, {"backup done"}, None)]  # fmt: skip
MESSAGE_GROUPS = {"billing", "shipping", "returns", "account", "technical", "sales", "feedback", "housing", "travel", "health", "school",
                  "human resources", "work", "legal"}  # fmt: skip


def distractors(world, concept, count):
    near = [c for c in concept.group.concepts if c is not concept]
    far = [c for c in CONCEPTS if c.group is not concept.group]
    chosen = world.sample(near, min(len(near), round(count * world.pick([0, 0.5, 0.5, 1]))))
    return chosen + world.sample(far, count - len(chosen))


def with_other(world, options, right):
    """Sometimes an option for all else; then the right one may be missing."""
    if len(options) > 2 and world.chance(0.22):
        other = world.say(asking.OTHER)
        if other not in options:
            if world.chance(0.45):
                del options[right]
                right = other
            options[other] = None
    return options, right


def instructions(world, phrases):
    text = texts.varied(world, world.say(phrases))
    roll = world.rng.random()
    if world.split == "train" and world.chance(0.06):
        text = world.pick(["question: {}", "please answer: {}", "tell me: {}", "{} Answer from the text.", "judging by the text, {}"]).format(text)
    if roll < 0.03:
        return {"task": world.pick(JSON_WHICH), "question": text}
    if roll < 0.6:
        return text[0].upper() + text[1:]
    return text.rstrip("?.") if roll > 0.9 else text


def concept_choice(world, concept):
    count = world.pick([2, 3, 3, 4, 4, 5, 6, 8])
    options, chosen = asking.named(world, [concept, *distractors(world, concept, count - 1)])
    options, right = with_other(world, options, chosen[concept.key])
    return asking.choice(world, instructions(world, WHICH_CONCEPT), options, right, 0.02)


def group_choice(world, concept):
    count = world.pick([2, 3, 4, 4, 5, 6])
    groups = [concept.group, *world.sample([g for g in TOPICS if g is not concept.group], count - 1)]
    options, chosen = asking.named(world, groups)
    options, right = with_other(world, options, chosen[concept.group.key])
    return asking.choice(world, instructions(world, WHICH_GROUP), options, right, 0.03)


def about(world, concept):
    """Is it about this concept, or its group; or about another."""
    yes = world.chance(0.5)
    if world.chance(0.3):
        subject = concept.group if yes else world.pick([g for g in TOPICS if g is not concept.group])
    else:
        subject = concept if yes else world.pick(distractors(world, concept, 2))
    world.slots.kept["name", False] = world.say(subject.names)
    text = instructions(world, ABOUT)
    criteria = None
    if world.chance(0.4):
        other = world.pick([c for c in CONCEPTS if c is not subject])
        criteria = {"true": world.say(subject.descriptions)}
        if world.chance(0.7):
            criteria["false"] = world.pick([world.say(asking.OTHER), "anything else", "not so", world.say(other.descriptions)])
    return asking.noul(text, 0.97 if yes else 0.03, criteria)


def mention(world, used):
    kind = world.pick(list(MENTIONS))
    return asking.noul(instructions(world, MENTIONS[kind]), 0.97 if kind in used else 0.04)


def special(world, concept):
    fitting = [s for s in SPECIAL if concept.key in s[1]]
    pick_fitting = fitting and world.chance(0.75)
    phrases, yes, unclear = world.pick(fitting if pick_fitting else SPECIAL)
    if unclear and concept.key in unclear:
        return None
    if phrases in (IS_ERROR, ACTION, SUCCEEDED) and concept.key not in BAD_EVENTS | GOOD_EVENTS:
        return None
    if phrases is SUCCEEDED and concept.key not in ("backup done", "backup failed", "server error"):
        return None
    return asking.noul(instructions(world, phrases), 0.97 if concept.key in yes else 0.03)


def axis_question(world, axis, index):
    """A question on an axis whose level is concept number `index`."""
    concept = axis.concepts[index]
    kinds = ["choice", "noul"] + (["score"] * 4 if axis.ordered else ["choice"])
    kind = world.pick(kinds)
    text = instructions(world, AXIS_WHICH[axis.key])
    if kind == "score":
        return asking.scale_question(world, text, axis, index)
    if kind == "choice":
        others = [c for c in axis.concepts if c is not concept]
        if axis.ordered and world.chance(0.5):  # only ends that are clearly apart
            others = [c for c in others if abs(axis.concepts.index(c) - index) > 1] or others
        kept = world.sample(others, world.rng.randint(1, len(others)))
        options, chosen = asking.named(world, [concept, *kept], world.pick(["names", "names", "both"]))
        return asking.choice(world, text, options, chosen[concept.key], 0.04)
    if axis.key in AXIS_NOULS:
        phrases, yes, no = world.pick(AXIS_NOULS[axis.key])
        if index in yes or index in no:
            return asking.noul(instructions(world, phrases), 0.96 if index in yes else 0.04)
        return asking.scale_question(world, text, axis, index)
    key = concept.key if world.chance(0.5) and concept.key in MEMBER_NOULS[axis.key] else world.pick(list(MEMBER_NOULS[axis.key]))
    return asking.noul(instructions(world, MEMBER_NOULS[axis.key][key]), 0.96 if key == concept.key else 0.04)


def message(world):
    """A message about a concept, with moods and other sentences, and questions on all of it."""
    concept = world.pick(CONCEPTS)
    phrases = [world.say(concept.phrases)]
    if world.chance(0.25):
        phrases.append(world.say(concept.phrases))
    axes = {}
    human = concept.group.key in MESSAGE_GROUPS
    if human:
        for key in world.sample(["urgency", "anger", "politeness"], world.pick([0, 0, 1, 1, 2])):
            if {key, *axes} >= {"anger", "politeness"}:
                continue
            axes[key] = world.rng.randrange(len(AXES[key].concepts))
            mood = world.say(AXES[key].concepts[axes[key]].phrases)
            phrases.insert(world.rng.randint(0, 1) if world.chance(0.4) else len(phrases), mood)
    used = set(world.slots.used)
    machine = concept.group.key == "operations"
    phrases = [texts.varied(world, p) for p in phrases]
    text = texts.joined(world, phrases, 0.45 if human else 0.08 if machine else 0.2)
    if machine and world.chance(0.4):
        text = f"{world.slots.fresh('date')} {world.slots.fresh('time')} " + text
    used |= world.slots.used
    makers = [concept_choice, concept_choice, concept_choice, about, about, group_choice]
    if concept.group.key in ("documents",):
        makers = [concept_choice, about]
    questions = []
    for make in world.sample(makers, world.pick([1, 2, 3])):
        questions.append(make(world, concept))
    if world.chance(0.35):
        made = special(world, concept)
        if made:
            questions.append(made)
    for key, index in axes.items():
        questions.append(axis_question(world, AXES[key], index))
    if human and not axes and world.chance(0.12):  # no mood in the text: it is calm, and hardly urgent
        questions.append(asking.noul(instructions(world, AXIS_NOULS["anger"][0][0]), 0.1))
    if world.chance(0.15):
        questions.append(mention(world, used))
    subject = None
    if human and world.chance(0.12):
        subject = texts.sentence(world, world.say(concept.names)) if world.chance(0.5) else world.say(texts.GREETING)
    return texts.wrapped(world, text, subject), questions


def moods(world):
    """One level of an axis: reviews, incidents, comments, sentences."""
    ordered = [axis for axis in AXES.values() if axis.ordered]
    axis = world.pick([*AXES.values(), *ordered, AXES["sentiment"], AXES["sentiment"], AXES["speech act"], AXES["emotion"]])
    index = world.rng.randrange(len(axis.concepts))
    concept = axis.concepts[index]
    phrases = [world.say(concept.phrases)]
    for _ in range(world.pick([0, 0, 1, 1, 2] if axis.key not in ("speech act", "stance", "resolution") else [0, 0, 1])):
        phrases.append(world.say(concept.phrases))
    phrases = [texts.varied(world, p) for p in phrases]
    text = texts.joined(world, phrases, 0.25 if axis.place in ("review", "message") else 0.06)
    questions = [axis_question(world, axis, index) for _ in range(world.pick([1, 2, 2, 3]))]
    return texts.wrapped(world, text, plain=0.75), questions


HAS_ERROR = Phrases("is there an error (in the log|)?\ndoes the log contain (an error|a failure|a problem)?\n!has any of the lines bad news?")
WHICH_SERVICE = Phrases("which (service|component|host) (fails|has a problem|is in trouble|reports the error)?\nwhere is the (problem|error|fault)?\n!which part misbehaves?")


def log(world):
    """Several lines of which at most one reports a problem."""
    services = world.slots.several("service", world.rng.randint(2, 4))
    bad = world.chance(0.6)
    at = world.rng.randrange(len(services))
    lines = []
    by_key = {c.key: c for c in CONCEPTS}
    concept = by_key[world.pick(sorted(BAD_EVENTS - {"brute force", "malware", "certificate", "cpu load"}))]
    for i, service in enumerate(services):
        event = concept if bad and i == at else by_key[world.pick(["backup done", "normal operation", "deployment", "login event"])]
        line = None
        for _ in range(6):
            world.slots.kept = {("service", False): service}
            line = world.say(event.phrases)
            if service in line:
                break
        if service not in line:
            line = f"{service}: {line}"
        lines.append(line)
    if world.chance(0.5):
        lines = [f"{i + 10}:{world.rng.randint(10, 59)}:{world.rng.randint(10, 59)} {line}" for i, line in enumerate(lines)]
    questions = [asking.noul(instructions(world, HAS_ERROR), 0.97 if bad else 0.03)]
    if bad:
        questions.append(asking.choice(world, instructions(world, WHICH_SERVICE), {s: None for s in services}, services[at], 0.02))
        questions.append(concept_choice(world, concept))
    return (lines if world.chance(0.2) else "\n".join(lines)), questions


AGENT = Phrases("""
have you (tried|already tried) (a restart|turning it off and on|another cable|the reset link) ?
(let me|I'll|I will) (check|have a look|look into it|ask a colleague).
(thanks for|thank you for) (your message|waiting), what is your order number?
(I have|I've) (sent you a new one|reset it|restarted the line|changed the setting), please try again.
(sorry to hear that|sorry about that|I apologise for the trouble).
could you send (a photo|a screenshot|the number)?
!bear with me a moment while I look.
!would you unplug it for a minute?
""")
TURN_WHO = Phrases("who (wrote|sent|said) the (last|final) (message|line)?\nwho (speaks|writes) last?\n!from whom is the closing line?")
TURN_FIRST = Phrases("who (wrote|sent|said) the first (message|line)?\nwho (began|started|speaks first)?\n!who opened the talk?")


def support_chat(world):
    """Customer and agent; at the end the problem is gone or is not."""
    concept = world.pick([c for c in CONCEPTS if c.group.key in ("technical", "account", "shipping", "billing", "housing")])
    customer, agent = world.pick([("customer", "agent"), ("user", "support"), tuple(world.slots.several("person", 2))])
    turns = [(customer, world.say(concept.phrases))]
    for _ in range(world.pick([1, 1, 2])):
        turns.append((agent, world.say(AGENT)))
    axis, index = AXES["resolution"], world.rng.randrange(2)
    turns.append((customer, world.say(axis.concepts[index].phrases)))
    if world.chance(0.3):
        turns.append((agent, world.pick(["You're welcome!", "Glad to hear it.", "Anything else?"] if index == 0 else ["I'll pass it on.", "I'm sorry.", "One moment."])))
    turns = [(who, texts.worn(world, texts.sentence(world, texts.varied(world, text)))) for who, text in turns]
    questions = [axis_question(world, axis, index)]
    questions.append(concept_choice(world, concept) if world.chance(0.6) else about(world, concept))
    if world.chance(0.4):
        first = world.chance(0.5)
        options = {customer: None, agent: None}
        if world.chance(0.3):
            options[world.slots.fresh("person")] = None
        questions.append(asking.choice(world, instructions(world, TURN_FIRST if first else TURN_WHO), options, turns[0 if first else -1][0], 0.02))
    return texts.conversation(world, turns), questions
