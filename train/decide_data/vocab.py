"""Names, things and numbers that fill the slots of phrases. The test's are its own: no word is in both lists."""

from .dictionary import dictionary
from .grammar import parted

SYLLABLES = parted({
    "train": ("ba be bo da de do fa fe fi ga go ka ke ko la le li lo ma me mi mo na ne ni no pa pe po ra re ri ro "
              "sa se so ta te to va ve vi wa we zo").split(),
    "test": "bru cha chi dro dwe fla fru gla gri hy ju kri kle kwi ny phi pla pru qua sho shu sky sti thu tro twi vu yo zu".split(),
})
ENDINGS = {"train": "n r s l x m t".split() + [""] * 4, "dev": ["", "k", "f"], "test": "nd rk lf sh ck mp ng".split() + [""] * 3}

LISTS = {
    "person": (
        "Anna Ben Carla David Emma Felix Grace Hugo Ines James Karen Liam Maria Nina Oscar Paula Quinn Rosa Samuel Tina "
        "Umar Vera Walter Yusuf Zoe Ahmed Bianca Carlos Diana Erik Fatima George Helen Ivan Julia Kofi Laura Mehmet Nora "
        "Olga Pedro Ravi Sofia Thomas Ursula Victor Wei Yuki Adam Clara Daniel Elena Frank Gina Henry Jack Kim Lena Mark "
        "Peter Sarah Simon Susan Robert Alice Chris Lucy Mike Jane John Mary Tom Bob Aaron Abdul Adele Aisha Alan Albert Alex Alfred "
        "Amanda Amir Amy Andrea Andrew Angela Anita Anton Ariel Arthur Astrid Barbara Beatrice Bella Bernard Bridget Bruno Camille Caroline Catherine "
        "Cecilia Charles Chen Chloe Christina Claire Colin Connor Cora Dana Dario Deborah Denise Derek Dmitri Dominic Donna Doris Dora Edgar Edith Edward "
        "Eileen Eliza Ella Elliot Emil Emily Enzo Eric Esther Eva Evan Fabian Faisal Finn Flora Florian Frances Fred Frida Gabriel Gemma Gerald Gloria "
        "Gordon Greta Gregor Hannah Harold Harry Hassan Heidi Hilda Howard Ian Ida Igor Irene Iris Isaac Isabel Jacob Jakob Jan Jasmin Jason Jean Jenny "
        "Joan Joel Jonas Joseph Joyce Judith Julian June Justin Kai Kate Keith Kevin Kurt Kyle Larry Leah Leila Leo Leon Lily Linda Lisa Lois Louis Lucas "
        "Luis Luke Lydia Mabel Malik Marco Margaret Marta Martin Marvin Matt Max May Megan Mia Michael Mila Milan Mira Miriam Mona Monica Morris Nadia "
        "Nathan Neil Nelly Nick Nils Noah Noel Norman Olaf Oliver Omar Otto Owen Pablo Pamela Patrick Paul Petra Philip Pia Rachel Ralf Ramon Rashid Rebecca "
        "Rita Roger Roland Ron Ruben Ruth Ryan Sally Sandra Sanjay Sean Selma Seth Sharon Sheila Sonia Stefan Stella Steve Sven Sylvia Tara Ted Teresa Tim "
        "Toby Tony Tracy Uma Valentin Vanessa Vincent Viola Wendy William Wilma Yara Yolanda Zach Zara",
        "Agnes Bertil Cosima Dilan Eamon Freya Gustavo Hiroshi Ilka Jerome Katya Lorenzo Mirela Nadim Oona Piotr Rhea "
        "Sunniva Tariq Ulrike Vikram Wanda Xenia Yannick Zelda Amadou Birgit Cyrus Delphine Esteban",
    ),
    "city": (
        "Paris London Berlin Rome Madrid Tokyo Moscow Prague Dublin Chicago Boston Munich Milan Porto Seville Lyon Kyoto "
        "Sydney Toronto Denver Seattle Hamburg Zurich Geneva Brussels Cairo Nairobi Lagos Lima Bogota Delhi Mumbai Seoul "
        "Bangkok Athens Budapest Warsaw Krakow Riga Oslo Leeds Manchester Glasgow Bristol Austin Dallas Miami Accra Algiers Amsterdam Ankara Antwerp Baghdad Baku "
        "Barcelona Basel Beijing Beirut Belfast Belgrade Bilbao Bologna Bordeaux Bremen Brisbane Brno Bucharest Caracas Casablanca Cologne Copenhagen Cork "
        "Dakar Damascus Detroit Dresden Dubai Edinburgh Florence Frankfurt Granada Hanoi Havana Helsinki Houston Innsbruck Istanbul Jakarta Kabul Kampala "
        "Karachi Kigali Kingston Kyiv Lahore Lausanne Lille Lisbon Liverpool Lucerne Luxembourg Malmo Manila Marseille Melbourne Minsk Montreal Naples "
        "Nashville Nice Nicosia Odessa Orlando Ottawa Palermo Panama Phoenix Pisa Plymouth Portland Poznan Reykjavik Rotterdam Santiago Sheffield Sofia "
        "Split Stockholm Stuttgart Tallinn Tampa Tbilisi Tirana Toulouse Trieste Tunis Vancouver Venice Verona Vienna Vilnius Wellington York Zagreb",
        "Ghent Turin Nantes Bergen Tampere Gdansk Ljubljana Izmir Valencia Leipzig Osaka Perth Calgary Tucson Cardiff Aarhus "
        "Graz Plovdiv Malaga Utrecht Genoa Salzburg Halifax Quito",
    ),
    "product": (
        "lamp|kettle|jacket|phone|laptop|camera|table|chair|blender|watch|printer|speaker|tent|bicycle|mattress|keyboard|"
        "monitor|vacuum cleaner|coffee machine|desk|sofa|bag|suitcase|dress|sweater|toy train|drill|mixer|router|tablet|"
        "headset|pair of shoes|coat|mirror|carpet|washing machine|fridge|razor|hair dryer|game|book|clock|guitar|mug|ring",
        "toaster|rucksack|projector|hammock|saddle|parasol|cushion|accordion|microscope|thermos|bathrobe|skateboard|"
        "juicer|lantern|wok|cardigan|scooter|telescope|shaver|easel|globe|pram|sewing machine|electric fan|harmonica",
    ),
    "company": (
        "Northwind|Acme|Globex|Initech|Umbrella Foods|Bluebird|Sunrise Media|Delta Steel|Greenfield|Orion Bank|Vertex|"
        "Maple Air|Stonebridge|Silverline|Redwood|Harbor Insurance|Polaris|Summit Energy|Lakeside Motors|Apex",
        "Quillfeather|Brassworth|Tidewater Mills|Ironvale|Copperleaf|Windmere|Foxglove Labs|Marigold Rail|Granite & Sons",
    ),
    "app": (
        "the app|MyDesk|Flowboard|the portal|PhotoBox|TaskPro|the client|the website|Mailbird|Calendo|Notely|the shop app",
        "Sketchpod|Ledgerly|Trackwise|Chatnest|Plannify|Docusmart",
    ),
    "service": (
        "auth|mail|api|web|search|billing-service|cache|scheduler|gateway|orders|users|db-main|worker|payments|uploader|"
        "reports|nginx|postgres|redis|kafka",
        "ledgerd|thumbnailer|notifier|vaultd|geocoder|ingest|crawler|mixerd|stockd",
    ),
    "host": (
        "web-1|web-2|db-1|db-2|app-3|mail-1|node-7|backup-1|cache-2|edge-4|srv-10|build-5",
        "kiosk-9|relay-6|vault-8|ams-rack-2|tokyo-11",
    ),
    "path": (
        "orders|login|api/users|cart|parser.py|main.c|report|upload|search|auth module|settings page|index.html|client.js",
        "invoices/new|avatar.rs|ledger.go|wishlist|geo/tiles|cursor.kt",
    ),
    "login": ("alice|bob|jsmith|mmeyer|k.lee|guest7|deploy|svc-web|tina88|rroe", "zquade|o.thrush|nightowl|pfenn|yvette2"),
    "file": ("report.docx|invoice.pdf|setup.exe|photo.zip|list.xls|update.bin", "ledger.ods|scan7.tif|gift.scr|minutes.odt"),
    "url": ("www.win-prize.example|bit.example/x1|secure-bank.example|shop-deals.example|login-check.example|free.example/go",
            "http://lucky-draw.example|cash4u.example|pay-fast.example/k|verify-now.example"),
    "street": ("Main Street|Oak Avenue|Station Road|Church Lane|High Street|Park Road|Mill Street",
               "Quarry Hill|Beacon Row|Thistle Close|Cooper's Yard"),
    "job": ("a nurse|a teacher|an engineer|a driver|an accountant|a cook|a developer|a manager|a designer|an electrician|"
            "a sales assistant|a clerk|a waiter|a lawyer|a painter",
            "a librarian|a welder|a florist|an optician|a midwife|a surveyor|an archivist"),
    "thing": ("product|hotel|restaurant|film|book|phone|camera|app|service|course|place|game|album|car|trip|shop|jacket|"
              "meal|room|laptop|series|museum|play|tour",
              "novel|gadget|hostel|podcast|bistro|campsite|exhibition|printer"),
    "noun": ("door|window|bridge|shop|office|kitchen|engine|road|garden|train|machine|room|report|box|server|lift|pool|"
             "bottle|fridge|bus|gate|lamp|museum|soup|coffee|street|boat|park|library|wall|hall|chair|house|roof",
             "cellar|ferry|tower|oven|harbour|meadow|canteen|tunnel|staircase|barn|chapel|stove|quay"),
}  # fmt: skip
LISTS = {
    kind: parted({
        "train": train.split("|") if "|" in train else train.split(),
        "test": test.split("|") if "|" in test else test.split(),
    })
    for kind, (train, test) in LISTS.items()
}
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
CURRENCIES = ["{} dollars", "${}", "{} euros", "{} EUR", "€{}", "{} pounds", "£{}", "{} USD"]


def made_up(rng, split):
    """A name that nobody has."""
    return ("".join(rng.choice(SYLLABLES[split]) for _ in range(rng.choice([2, 2, 3]))) + rng.choice(ENDINGS[split])).capitalize()


def money(rng):
    amount = rng.choice([rng.randint(2, 99), rng.randint(100, 2500), round(rng.uniform(3, 300), 2), rng.randint(1, 40) * 25])
    return rng.choice(CURRENCIES).format(f"{amount:.2f}" if isinstance(amount, float) else amount)


def date(rng):
    day, month, year = rng.randint(1, 28), rng.randrange(12), rng.randint(2019, 2027)
    return rng.choice([
        f"{day} {MONTHS[month]}", f"{MONTHS[month]} {day}", f"{year}-{month + 1:02d}-{day:02d}", f"{day}.{month + 1}.{year}",
        f"{day} {MONTHS[month]} {year}", f"{month + 1}/{day}",
    ])  # fmt: skip


def clock(rng):
    hour, minute = rng.randint(6, 22), rng.choice([0, 0, 15, 30, 45])
    return rng.choice([f"{hour}:{minute:02d}", f"{(hour - 1) % 12 + 1} {'am' if hour < 12 else 'pm'}", f"{hour:02d}:{minute:02d}"])


class Slots:
    """Fills the slots of one state: a slot keeps its value, so that the sentences speak of one thing; `used` says which
    kinds the text mentions."""

    NUMBERS = {"n": lambda r: str(r.randint(2, 60)), "d": lambda r: str(r.randint(1, 9)), "port": lambda r: str(r.randint(1000, 9999)),
               "order": lambda r: r.choice(["#", "", "A-", "no. "]) + str(r.randint(1000, 99999)),
               "ip": lambda r: ".".join(str(r.randint(1, 254)) for _ in range(4)),
               "phone": lambda r: f"0{r.randint(100, 999)} {r.randint(100000, 9999999)}",
               "card": lambda r: " ".join(str(r.randint(1000, 9999)) for _ in range(4))}  # fmt: skip

    def __init__(self, rng, split):
        self.rng, self.split = rng, split
        self.kept, self.used = {}, set()

    def fresh(self, kind):
        rng = self.rng
        if kind in self.NUMBERS:
            return self.NUMBERS[kind](rng)
        made = {"money": money, "date": date, "time": clock, "day": lambda r: r.choice(DAYS), "month": lambda r: r.choice(MONTHS)}
        if kind in made:
            return made[kind](rng)
        if kind in ("person", "city", "company") and rng.random() < 0.4:
            return made_up(rng, self.split)
        if self.split == "train" and kind in ("noun", "product") and rng.random() < 0.35:
            return rng.choice(dictionary().things)
        return rng.choice(LISTS[kind][self.split])

    def several(self, kind, count):
        """Different values of one kind; development's few are made up by training's."""
        found, tries = [], 0
        while len(found) < count:
            tries += 1
            value = self.fresh(kind) if tries < 40 or kind not in LISTS else self.rng.choice(LISTS[kind]["all"])
            if value not in found:
                found.append(value)
        return found

    def __call__(self, kind, second=False):
        self.used.add(kind)
        if kind == "d":
            return self.fresh(kind)
        key = (kind, second)
        while key not in self.kept:
            value = self.fresh(kind)
            if value != self.kept.get((kind, not second)):
                self.kept[key] = value
        return self.kept[key]
