"""What the pages of ColBench-Mini are about: topics with their words.

A topic is a kind of business with names, things to show and words for links, fields and buttons.
The held-out topics and every text of theirs appear nowhere in training. No text has a word for a
colour, a size, a place or a part of a page, so that such a word always speaks of the design.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

_TOPICS = """
bakery|Oven,Crumb,Loaf|Bread,Cakes,Rolls,Pies,Muffins,Cookies
restaurant|Table,Kitchen,Spoon|Starters,Soups,Pasta,Fish,Desserts,Drinks
coffee shop|Bean,Cup,Roast|Espresso,Latte,Mocha,Tea,Cocoa,Filter coffee
book shop|Ink,Chapter,Shelf|Novels,Poetry,Comics,Travel guides,Cookbooks,Biographies
gym|Muscle,Sprint,Pulse|Yoga,Boxing,Cycling,Weights,Pilates,Swimming
travel agency|Compass,Voyage,Harbor|Beaches,Mountains,Cities,Islands,Cruises,Safaris
bank|Coin,Vault,Savings|Accounts,Loans,Mortgages,Savings plans,Insurance,Funds
school|Campus,Lesson,Chalk|Maths,History,Music,Science,Art,Sports
hospital|Care,Heart,Health|Surgery,Children,Emergency,Dentistry,Eye care,Nursing
law firm|Justice,Counsel,Verdict|Family law,Tax law,Contracts,Property,Patents,Labor law
real estate agency|Home,Roof,Estate|Houses,Flats,Villas,Offices,Cottages,Land
software company|Byte,Cloud,Pixel|Apps,Databases,Websites,Security,Support,Hosting
charity|Hope,Kindness,Hand|Water,Food,Schools,Shelter,Medicine,Clothes
museum|Gallery,Relic,Treasure|Paintings,Sculptures,Fossils,Coins,Maps,Photographs
hotel|Pillow,Lodge,Inn|Single rooms,Double rooms,Suites,Spa,Breakfast,Pool
flower shop|Petal,Garden,Bloom|Roses,Tulips,Lilies,Orchids,Bouquets,Wreaths
pet shop|Paw,Tail,Whisker|Dogs,Cats,Birds,Hamsters,Rabbits,Turtles
music school|Melody,Tune,Chord|Piano,Guitar,Violin,Drums,Flute,Singing
car dealer|Motor,Wheel,Engine|Sedans,Vans,Trucks,Electric cars,Sports cars,Used cars
bike shop|Pedal,Saddle,Spoke|City bikes,Racing bikes,Helmets,Tyres,Lights,Repairs
photographer|Lens,Shutter,Portrait|Weddings,Portraits,Landscapes,Newborns,Fashion,Events
cinema|Screen,Reel,Curtain|Comedies,Dramas,Thrillers,Cartoons,Westerns,Classics
farm|Meadow,Barn,Harvest|Milk,Eggs,Cheese,Honey,Apples,Potatoes
toy shop|Puzzle,Marble,Kite|Dolls,Trains,Puzzles,Games,Kites,Robots
architect|Arch,Plan,Pillar|Bridges,Towers,Schools,Homes,Parks,Stations
newspaper|Times,Herald,Post|Politics,Culture,Weather,Business,Opinion,Local news
barber|Razor,Comb,Scissors|Haircuts,Shaves,Beards,Styling,Washing,Kids cuts
dentist|Smile,Tooth,Molar|Checkups,Fillings,Braces,Implants,Cleaning,Whitening
wine shop|Cork,Grape,Cellar|Riesling,Merlot,Champagne,Cider,Port,Sherry
tailor|Needle,Thread,Bobbin|Suits,Dresses,Shirts,Coats,Repairs,Trousers
game studio|Quest,Arcade,Joystick|Puzzles,Racing,Strategy,Adventure,Chess,Quiz
garden centre|Root,Leaf,Seed|Trees,Herbs,Shrubs,Tools,Soil,Pots
library|Reader,Archive,Volume|Fiction,Maps,Journals,Children,Films,Audio books
language school|Word,Grammar,Accent|French,Spanish,German,Italian,Chinese,Arabic
event planner|Party,Confetti,Banquet|Weddings,Birthdays,Concerts,Fairs,Dinners,Jubilees
news blog|Story,Note,Gazette|Travel,Recipes,Films,Music,Science,Sports
furniture shop|Chair,Oak,Sofa|Chairs,Tables,Beds,Lamps,Sofas,Desks
sports club|Goal,Racket,Champion|Tennis,Football,Hockey,Golf,Rowing,Chess
cleaning service|Broom,Soap,Sparkle|Windows,Carpets,Kitchens,Offices,Stairs,Gardens
job board|Career,Desk,Talent|Teachers,Nurses,Drivers,Cooks,Engineers,Painters
"""
_HELD_OUT_TOPICS = """
observatory|Comet,Nebula,Orbit|Planets,Moons,Galaxies,Telescopes,Meteors,Eclipses
chocolate maker|Truffle,Praline,Cacao|Truffles,Pralines,Nougat,Fudge,Bonbons,Caramels
ski resort|Glacier,Slope,Chalet|Lifts,Slopes,Huts,Sledges,Ski rental,Snow reports
puppet theatre|Marionette,Puppet,Fable|Fairy tales,Shadow plays,Workshops,Masks,Costumes,Rehearsals
sailing school|Anchor,Rudder,Breeze|Dinghies,Yachts,Knots,Signals,Regattas,Catamarans
watchmaker|Pendulum,Dial,Hourglass|Wristwatches,Clocks,Alarms,Stopwatches,Straps,Batteries
beekeeper|Hive,Nectar,Swarm|Candles,Pollen,Wax,Royal jelly,Hives,Mead
mushroom grower|Spore,Truffle Wood,Morel|Morels,Chanterelles,Oyster caps,Spawn kits,Compost,Tastings
radio station|Antenna,Frequency,Signal|Interviews,Jazz,Podcasts,Quizzes,Morning show,Charts
tea house|Samovar,Kettle,Blossom|Oolong,Matcha,Rooibos,Jasmine,Assam,Chai
circus|Trapeze,Juggler,Acrobat|Clowns,Acrobats,Jugglers,Magicians,Fire eaters,Tightrope
pottery|Clay,Kiln,Glaze|Vases,Bowls,Mugs,Plates,Jugs,Tiles
"""
_NAMES = "Proud,Clever,Happy,Sunny,Royal,Lucky,Wild,Old,New,Quiet,Brave,Swift,Honest,Cosy,Grand"
_HELD_OUT_NAMES = "Velvet,Gentle,Noble,Mystic,Frosty,Merry,Humble,Tender"


@dataclass(frozen=True, slots=True)
class Words:
    """The texts that every topic of a part of the world shares."""

    names: tuple[str, ...]
    slogans: tuple[str, ...]  # about a {thing}
    links: tuple[str, ...]
    points: tuple[str, ...]
    fields: tuple[str, ...]
    buttons: tuple[str, ...]
    footers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Topic:
    """A kind of business: what a person calls it, nouns for its name, things to show."""

    name: str
    nouns: tuple[str, ...]
    things: tuple[str, ...]
    words: Words


def _split(line: str) -> tuple[str, ...]:
    return tuple(line.split(","))


_WORDS = Words(
    _split(_NAMES),
    _split(
        "The best {thing} in town,Love your {thing},{thing} made easy,Try our {thing} today"
        ",All about {thing},{thing} for everybody,Time for {thing},Better {thing} every day"
    ),
    _split("Home,About,Contact,Blog,Shop,News,Prices,Team,Help,Jobs"),
    _split(
        "Free parking,Fast delivery,Fair prices,Friendly staff,Open on Sunday,Free advice"
        ",Gift vouchers,Easy booking,Student discount,Family owned,Award winning,Secure payment"
    ),
    _split("Name,Email,Phone,Date,City,Message,Address,Company"),
    _split("Send,Order now,Sign up,Book now,Learn more,Start,Join us,Buy now,Call us,Read more"),
    _split(
        "Contact us,Made with love,Open every day,See you soon,Follow us,All rights reserved"
        ",Thank you,Call us today"
    ),
)
_HELD_OUT_WORDS = Words(
    _split(_HELD_OUT_NAMES),
    _split("Discover {thing} with us,{thing} beyond compare,Where {thing} come alive"),
    _split("Visit,Tickets,Calendar,Press,Partners,Stories"),
    _split("Guided tours,Workshops included,Wheelchair access,Group rates,Live demos,Kids welcome"),
    _split("Surname,Postcode,Country,Guests,Arrival,Question"),
    _split("Reserve,Explore,Subscribe,Get a quote,Apply,Donate"),
    _split("Find us on the map,Since 1987,Questions are welcome,Come back any time"),
)


@cache
def topics() -> tuple[Topic, ...]:
    """The known topics: of training, validation and test."""
    return _read(_TOPICS, _WORDS)


@cache
def held_out_topics() -> tuple[Topic, ...]:
    """Topics that training never saw, with texts it never saw."""
    return _read(_HELD_OUT_TOPICS, _HELD_OUT_WORDS)


def _read(lines: str, words: Words) -> tuple[Topic, ...]:
    rows = (line.split("|") for line in lines.strip().splitlines())
    return tuple(Topic(name, _split(nouns), _split(things), words) for name, nouns, things in rows)
