#!/usr/bin/env python3
"""Writes orders.jsonl and catalogue.json: the same ones each time. See README.md."""
import json
import random
from pathlib import Path

HERE = Path(__file__).parent
LINES = 1000
dice = random.Random(20)

CATALOGUE = [  # sku, price of one in cents, stock
    ("tea.green", 250, 800), ("tea.black", 230, 800), ("coffee 250g", 690, 900), ("mug/blue", 1290, 700),
    ("kettle-1.7l", 4999, 90), ("пряник", 180, 900), ("サブレ", 320, 900), ("sugar*", 95, 900),
    ("milk>3.5%", 129, 900), ("honey~wild", 850, 120), ("spoon", 310, 900), ("crème brûlée", 540, 900),
]
REGIONS = ["eu-west", "eu.central", "us>east", "us*west", "asia pacific", "Île-de-France", "Côte d’Ivoire", "日本",
           "$internal", "~north~", "Zürich (Kreis 4)", "tab\there"]
CUSTOMERS = [f"c-{number:03}" for number in range(117)] + ["o'hara@example.com", "müller gmbh", "小林"]
# Where receipts go. The mail server of the example knows `example.com` alone: three customers have mistyped it.
EMAILS = {customer: f"{customer}@example.com" for customer in CUSTOMERS} | {
    "o'hara@example.com": "o'hara@example.com", "müller gmbh": "mueller@example.com", "小林": "kobayashi@example.com",
    "c-017": "c-017@exmaple.com", "c-058": "c-058@example.con", "c-101": "c-101@example",
}
NOTES = ["ring twice", "leave at the door \U0001f6aa", 'say "hello"', "back\\slash", "two\nlines", ""]


def order(number):
    """A good order."""
    sku, price, _ = dice.choice(CATALOGUE)
    quantity = dice.choice([1, 1, 1, 2, 2, 3, 4, 5, 6, 8, 12])
    # One customer orders more than all others, so that many events have one ordering key.
    customer = "c-000" if dice.random() < 0.1 else dice.choice(CUSTOMERS)
    made = {
        "order_id": f"o-{number:04}" if number % 50 else f"o/{number:04} ü",
        "customer_id": customer,
        "email": EMAILS[customer],
        "region": dice.choice(REGIONS),
        "sku": sku,
        "quantity": quantity,
        "currency": "EUR",
        "total_cents": price * quantity,
    }
    if dice.random() < 0.1:
        made["note"] = dice.choice(NOTES)
    return made


def text(value):
    return json.dumps(value, ensure_ascii=False)


def without(value, field):
    return {name: value[name] for name in value if name != field}


SPOIL = [  # each makes a good order a bad line
    lambda good: text(good)[: dice.randrange(5, 60)],
    lambda good: "order_id;customer_id;region",
    lambda good: "",
    lambda good: text([good]),
    lambda good: text(without(good, "customer_id")),
    lambda good: text({**good, "region": None}),
    lambda good: text({**good, "quantity": str(good["quantity"])}),
    lambda good: text({**good, "quantity": 1.5}),
    lambda good: text({**good, "customer_id": "  "}),
    lambda good: text({**good, "order_id": ""}),
    lambda good: text({**good, "sku": "tea.green "}),
    lambda good: text({**good, "sku": "unicorn"}),
    lambda good: text({**good, "quantity": 0, "total_cents": 0}),
    lambda good: text({**good, "quantity": -good["quantity"]}),
    lambda good: text({**good, "quantity": 1001}),
    lambda good: text({**good, "currency": "USD"}),
    lambda good: text({**good, "currency": "eur"}),
    lambda good: text({**good, "total_cents": good["total_cents"] - 1}),
    lambda good: text({**good, "total_cents": good["total_cents"] * 100}),
]


def changed(good):
    """The same id with other, valid content."""
    sku, price, _ = dice.choice(CATALOGUE)
    quantity = good["quantity"] + 1
    return {**good, "sku": sku, "quantity": quantity, "total_cents": price * quantity, "region": dice.choice(REGIONS)}


def lines():
    bad = {at: SPOIL[turn % len(SPOIL)] for turn, at in enumerate(dice.sample(range(LINES), 32))}
    again = set(dice.sample([at for at in range(20, LINES) if at not in bad], 30))
    made = []
    for at in range(LINES):
        good = order(at)
        if at in bad:
            yield bad[at](good)
            # What was spoiled is sent again, correctly, by some of the customers: it is new then.
            if at % 3 == 0 and bad[at] is not SPOIL[2]:
                made.append((good, True))
        elif at in again:
            earlier, _ = made[-1] if dice.random() < 0.3 else dice.choice(made)
            yield text(earlier if dice.random() < 0.6 else changed(earlier))
        else:
            made.append((good, False))
            yield text(good)


(HERE / "orders.jsonl").write_text("".join(line + "\n" for line in lines()), encoding="utf-8")
catalogue = [{"sku": sku, "price_cents": price, "stock": stock} for sku, price, stock in CATALOGUE]
entries = ",\n".join("  " + text(article) for article in catalogue)
(HERE / "catalogue.json").write_text(f"[\n{entries}\n]\n", encoding="utf-8")
