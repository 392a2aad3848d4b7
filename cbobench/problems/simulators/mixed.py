# ruff: noqa: RUF012 - what a class states is read, never written
"""Designs with floats, whole numbers and choices among their inputs, without noise and with known
optima.

Four are of the literature, three are ours. What `best_known` names is the optimum: a test finds it
again by a local solver at every combination of whole numbers and choices, and holds it to the
published number. Its floats are rounded to the feasible side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cbobench.problems import PROBLEMS
from cbobench.problems.formulas.literature import reduce_speed
from cbobench.problems.simulators.simulator import Simulator

STEP = 1 / 16  # inches between the plates that are sold


class MixedDesign(Simulator):
    """Base of the designs: the same values at every run."""

    noisy = False
    inputs: ClassVar[Mapping[str, Any]]
    constraints: Any  # bounds by name, as every class below states them

    @classmethod
    def facts(cls) -> dict[str, str]:
        # Every f is maximised in the table of problems.
        design = cls()
        objective = design.rules[0]
        values = design.simulate(cls.best_known, np.random.default_rng(0))
        return {**super().facts(), "best": f"{objective.sign * values[objective.column]:.7g}"}


@PROBLEMS.register("mixed-vessel")
@dataclass(kw_only=True)
class MixedVessel(MixedDesign):
    """Price of a pressure vessel, its plates in sixteenths of an inch, radius and length in inches.

    Sandgren (1990) in the version of Coello & Mezura-Montes (2002): plates up to 99/16, length up
    to 200. Published: 6059.714335 (Kumar et al. 2020, RC23), which agrees to its last digit. The
    fourth constraint of the literature, length <= 240, holds everywhere and is left out; versions
    with lengths up to 240 have the optimum 5850.38.
    """

    source = "Sandgren (1990), version of Coello & Mezura-Montes (2002)"
    about = "a pressure vessel: two whole numbers of sixteenths of an inch, radius and length"
    inputs = {
        "shell": {"int": [1, 99]},
        "head": {"int": [1, 99]},
        "radius": {"float": [10, 200]},
        "length": {"float": [10, 200]},
    }
    objective = {"minimise": "price"}
    constraints = {
        "shell_lacks": {"at_most": 0, "unit": STEP},
        "head_lacks": {"at_most": 0, "unit": STEP},
        "volume": {"at_least": 1_296_000},
    }
    best_known = {"shell": 13, "head": 7, "radius": 42.09844559, "length": 176.636596}

    def simulate(self, x: Any, gen: np.random.Generator) -> Any:
        shell = STEP * x["shell"]
        head = STEP * x["head"]
        radius = x["radius"]
        length = x["length"]
        price = 0.6224 * shell * radius * length + 1.7781 * head * radius**2
        price = price + 3.1661 * shell**2 * length + 19.84 * shell**2 * radius
        return {
            "price": price,
            "shell_lacks": 0.0193 * radius - shell,
            "head_lacks": 0.00954 * radius - head,
            "volume": np.pi * radius**2 * length + 4 / 3 * np.pi * radius**3,
        }


# constraints of the speed reducer, in the order of `reduce_speed`
REDUCER_LIMITS = (
    "bending",
    "contact",
    "first_sag",
    "second_sag",
    "first_stress",
    "second_stress",
    "pitch",
    "narrow",
    "wide",
    "first_short",
    "second_short",
)


@PROBLEMS.register("mixed-reducer")
@dataclass(kw_only=True)
class MixedReducer(MixedDesign):
    """Weight of a speed reducer with whole teeth, lengths and diameters in centimetres.

    The formulas of the problem `speed-reducer`, with a second shaft from 7.3 cm: Golinski's problem
    as in Mezura-Montes & Coello (2005). Published: 2994.471066 (Gandomi et al. 2013, and others),
    which agrees. Every constraint is relative to its limit.
    """

    source = "Golinski (1973), version of Mezura-Montes & Coello (2005)"
    about = "a speed reducer: whole teeth, six floats, eleven constraints"
    inputs = {
        "width": {"float": [2.6, 3.6]},
        "module": {"float": [0.7, 0.8]},
        "teeth": {"int": [17, 28]},
        "first": {"float": [7.3, 8.3]},
        "second": {"float": [7.3, 8.3]},
        "thin": {"float": [2.9, 3.9]},
        "thick": {"float": [5.0, 5.5]},
    }
    objective = {"minimise": "weight"}
    constraints = {name: {"at_most": 0, "unit": 1} for name in REDUCER_LIMITS}
    best_known = {
        "width": 3.5,
        "module": 0.7,
        "teeth": 17,
        "first": 7.3,
        "second": 7.715319912,
        "thin": 3.350214667,
        "thick": 5.286654465,
    }

    def simulate(self, x: Any, gen: np.random.Generator) -> Any:
        values = reduce_speed(np.array([x[name] for name in self.inputs], dtype=float))
        return {"weight": -values[0], **dict(zip(REDUCER_LIMITS, values[1:], strict=True))}


# diameters of the wires that are sold, in inches (Sandgren 1990)
WIRES = [
    *(0.009, 0.0095, 0.0104, 0.0118, 0.0128, 0.0132, 0.014, 0.015, 0.0162, 0.0173, 0.018),
    *(0.02, 0.023, 0.025, 0.028, 0.032, 0.035, 0.041, 0.047, 0.054, 0.063, 0.072, 0.08, 0.092),
    *(0.105, 0.12, 0.135, 0.148, 0.162, 0.177, 0.192, 0.207, 0.225, 0.244, 0.263, 0.283, 0.307),
    *(0.331, 0.362, 0.394, 0.4375, 0.5),
]


@PROBLEMS.register("coil-spring")
@dataclass(kw_only=True)
class CoilSpring(MixedDesign):
    """Volume of wire of a compression spring: coils, one of 42 wires, mean diameter, in inches.

    Sandgren (1990), as in Datta & Figueira (2011). Published: 2.658559 (Lampinen & Zelinka 1999,
    Datta & Figueira 2011), which agrees. Their seventh constraint is 0 for every spring and left
    out. In the list of Kumar et al. (2020, RC30) the wire of 0.105 is one of 0.0105, by mistake;
    neither is feasible.
    """

    source = "Sandgren (1990), version of Datta & Figueira (2011)"
    about = "a compression spring: whole coils, a list of 42 wires, mean diameter"
    inputs = {
        "coils": {"int": [1, 70]},
        "wire": {"choice": WIRES},
        "diameter": {"float": [0.6, 3.0]},
    }
    objective = {"minimise": "volume"}
    constraints = {
        "stress": {"at_most": 189_000},
        "length": {"at_most": 14},
        "thickness": {"at_least": 0.2},
        "outside": {"at_most": 3},
        "index": {"at_least": 3},
        "preload": {"at_most": 6},
        "stroke": {"at_least": 1.25},
    }
    best_known = {"coils": 9, "wire": 0.283, "diameter": 1.22304101}

    def simulate(self, x: Any, gen: np.random.Generator) -> Any:
        coils = x["coils"]
        wire = x["wire"]
        diameter = x["diameter"]
        index = diameter / wire
        # of stresses at the inner side of a coil, after Wahl
        wahl = (4 * index - 1) / (4 * index - 4) + 0.615 / index
        rate = 11.5e6 * wire / (8 * coils * index**3)
        return {
            "volume": np.pi**2 / 4 * diameter * wire**2 * (coils + 2),
            "stress": 8 * index * wahl * 1000 / (np.pi * wire**2),
            "length": 1000 / rate + 1.05 * (coils + 2) * wire,
            "thickness": wire,
            "outside": diameter + wire,
            "index": index,
            "preload": 300 / rate,
            "stroke": (1000 - 300) / rate,
        }


# price of weld and of beam, strength, moduli of elasticity and of shear, in pounds and inches
MATERIALS = {
    "steel": (0.1047, 0.0481, 30e3, 30e6, 12e6),
    "cast iron": (0.0489, 0.0224, 8e3, 14e6, 6e6),
    "aluminium": (0.5235, 0.2405, 5e3, 10e6, 4e6),
    "brass": (0.5584, 0.2566, 8e3, 16e6, 6e6),
}
LOAD = 6000.0  # pounds
REACH = 14.0  # inches


@PROBLEMS.register("mixed-beam")
@dataclass(kw_only=True)
class MixedBeam(MixedDesign):
    """Price of a welded beam of one of four materials, welded on two sides or on four.

    Deb & Goyal (1996), as in Tran et al. (2019): weld, height and thickness of the beam in
    sixteenths of an inch, length of the weld a float. Published: 1.9553 (code of Daulton et al.
    2022), which agrees. The 1.9422 of Deb & Goyal is at a point whose shear stress is 2 % above the
    limit by these formulas. That code takes the root of the direct stress, and a shear modulus of
    brass of 10e6 in place of 6e6; brass is far from the best.
    """

    source = "Deb & Goyal (1996), welded beam with materials"
    about = "a welded beam: two or four sides, four materials, three whole numbers, one float"
    inputs = {
        "sides": {"choice": ["two", "four"]},
        "material": {"choice": [*MATERIALS]},
        "weld": {"int": [1, 32]},
        "length": {"float": [0.1, 10]},
        "height": {"int": [32, 320]},
        "thickness": {"int": [1, 32]},
    }
    objective = {"minimise": "price"}
    constraints = {
        "shear": {"at_most": 1},
        "bending": {"at_most": 1},
        "deflection": {"at_most": 0.25},
        "buckling": {"at_least": LOAD},
        "weld_beyond": {"at_most": 0, "unit": STEP},
    }
    best_known = {
        "sides": "four",
        "material": "steel",
        "weld": 3,
        "length": 1.782102254,
        "height": 132,
        "thickness": 4,
    }

    def simulate(self, x: Any, gen: np.random.Generator) -> Any:
        weld_price, beam_price, strength, young, modulus = MATERIALS[x["material"]]
        weld = STEP * x["weld"]
        height = STEP * x["height"]
        thick = STEP * x["thickness"]
        length = x["length"]

        # The weld: how long it is in all, its polar moment, and the way to its farthest point.
        reach = length**2 + (weld + height) ** 2
        along = length
        polar = length * (reach / 4 - length**2 / 6)
        if x["sides"] == "four":
            across = height**2 + (weld + length) ** 2
            along = length + height
            polar = polar + height * (across / 4 - height**2 / 6)
            reach = np.maximum(reach, across)
        radius = np.sqrt(reach) / 2

        # Its stress is of the load itself and of the moment, at an angle.
        direct = LOAD / (np.sqrt(2) * weld * along)
        torsion = LOAD * (REACH + length / 2) * radius / (np.sqrt(2) * weld * polar)
        square = direct**2 + torsion**2 + direct * torsion * length / radius
        slender = height / (4 * REACH) * np.sqrt(young / modulus)
        rigid = 4.013 * np.sqrt(young * modulus) * height * thick**3 / (6 * REACH**2)
        return {
            "price": (1 + weld_price) * along * weld**2
            + beam_price * height * thick * (REACH + length),
            "shear": np.sqrt(square) / (0.577 * strength),
            "bending": 6 * LOAD * REACH / (height**2 * thick) / strength,
            "deflection": 4 * LOAD * REACH**3 / (young * height**3 * thick),
            "buckling": rigid * (1 - slender),
            "weld_beyond": weld - thick,
        }


# heat that a coating lets through, and its price
COATINGS = {"TiN": (1.0, 0.0), "TiAlN": (0.8, 2.0), "DLC": (0.9, 3.5)}


@PROBLEMS.register("milling")
@dataclass(kw_only=True)
class Mill(MixedDesign):
    """Cost of milling below limits of roughness and temperature: teeth, coating, speed and feed.

    A coating that lets less heat through allows more speed, and costs more. Optimum 8.392855 (by
    the test), with both limits active; 8.4821 with TiAlN, 10.80 with DLC, 9.31 with a tooth less.
    The roughness has a kink at a speed of 180.
    """

    source = "ours"
    about = "milling: a whole number of teeth, three coatings, speed and feed"
    inputs = {
        "teeth": {"int": [2, 8]},
        "coating": {"choice": [*COATINGS]},
        "speed": {"float": [80, 300]},
        "feed": {"float": [0.1, 0.9], "log": True},
    }
    objective = {"minimise": "cost"}
    constraints = {"roughness": {"at_most": 0.6}, "temperature": {"at_most": 200}}
    best_known = {"teeth": 8, "coating": "TiN", "speed": 124.3447162, "feed": 0.4000607517}

    def simulate(self, x: Any, gen: np.random.Generator) -> Any:
        teeth = x["teeth"]
        speed = x["speed"]
        feed = x["feed"]
        heat, price = COATINGS[x["coating"]]
        wear = 1.5 * heat * (speed / 150) ** 3
        return {
            "cost": 30 / (speed / 100 * feed * teeth) + wear + price,
            "roughness": 0.3 + 2.2 * feed**2 * teeth**-0.3 + 0.002 * abs(speed - 180) * heat,
            "temperature": 120 * heat * (speed / 100) ** 0.8 * (1 + feed),
        }


# rates at 350 K of making and of losing the product (1/min), their activation (K), and the price
CATALYSTS = {
    "acid": (0.08, 0.006, 5000.0, 9000.0, 0.0),
    "copper": (0.12, 0.008, 9000.0, 6000.0, 4.0),
    "platinum": (0.5, 0.03, 4000.0, 8000.0, 13.0),
}


@PROBLEMS.register("reactor")
@dataclass(kw_only=True)
class Reactor(MixedDesign):
    """Gain of a reactor in which a raw material becomes a product, and the product waste.

    A -> B -> C of the first order, rates after Arrhenius. With temperature waste grows faster
    than the product with acid and platinum, and more slowly with copper. A tube yields more, and is
    limited by the heat where it enters, which a tank spreads. Optimum 71.636030 (by the test), in a
    tube with copper, limited by waste and heat; 70.11 with platinum, 33 kelvins cooler, limited by
    heat; 66.25 with acid, limited by waste, in twice the time.
    """

    source = "ours, after the series reaction of textbooks (Levenspiel 1999)"
    about = "a reactor: tube or tank, three catalysts, temperature and time"
    inputs = {
        "form": {"choice": ["tube", "tank"]},
        "catalyst": {"choice": [*CATALYSTS]},
        "temperature": {"float": [300, 400]},
        "minutes": {"float": [0.5, 60], "log": True},
    }
    objective = {"maximise": "gain"}
    constraints = {
        "waste": {"at_most": 0.09},
        "left": {"at_most": 0.2},
        "heat": {"at_most": 0.2},
    }
    best_known = {
        "form": "tube",
        "catalyst": "copper",
        "temperature": 357.0938263,
        "minutes": 13.11043836,
    }

    def simulate(self, x: Any, gen: np.random.Generator) -> Any:
        making, losing, start, ruin, price = CATALYSTS[x["catalyst"]]
        minutes = x["minutes"]
        warmth = 1 / 350 - 1 / x["temperature"]
        made = making * np.exp(start * warmth)
        lost = losing * np.exp(ruin * warmth)

        # In a tube it reacts as it flows, hottest where it enters; in a tank all is as what leaves.
        if x["form"] == "tube":
            left = np.exp(-made * minutes)
            product = made / (lost - made) * (left - np.exp(-lost * minutes))
            heat = made
        else:
            left = 1 / (1 + made * minutes)
            product = made * minutes * left / (1 + lost * minutes)
            heat = made * left
        burnt = 0.05 * (x["temperature"] - 300)
        return {
            "gain": 100 * product - price - burnt - 0.4 * minutes,
            "waste": 1 - left - product,
            "left": left,
            "heat": heat,
        }


# density, heat capacity, viscosity and conductivity (SI), and kilograms a second
FLUIDS = {
    "oil": (850.0, 2200.0, 0.01, 0.13, 150e3 / (2200 * 40)),
    "water": (990.0, 4180.0, 6e-4, 0.63, 150e3 / (4180 * 15)),
}
# how the tubes lie: area of one (of the pitch squared), transfer and friction between them
LAYOUTS = {"square": (1.0, 0.36, 1.2), "triangle": (0.866, 0.42, 1.8)}
DIFFERENCE = (65 - 40) / np.log(65 / 40)  # mean kelvins between the fluids


@PROBLEMS.register("exchanger")
@dataclass(kw_only=True)
class Exchanger(MixedDesign):
    """Yearly cost of a heat exchanger that takes 150 kW from oil by water, bore in millimetres,
    length in metres.

    Which fluid is inside decides where the flow is laminar, and so the best tubes: 19 of 12 mm in
    two passes with water, 14 of 16 mm in six with oil, at twice the cost. The limits of pressure
    are in kPa. Optimum 763.113398 (by the test), limited by duty and by the pressure outside.
    """

    source = "ours, after Kern's method (Kern 1950)"
    about = "a heat exchanger: which fluid is inside, layout, tubes, passes, baffles, two lengths"
    inputs = {
        "inside": {"choice": [*FLUIDS]},
        "layout": {"choice": [*LAYOUTS]},
        "tubes": {"int": [4, 40]},
        "passes": {"int": [1, 6]},
        "baffles": {"int": [1, 20]},
        "bore": {"float": [8, 30]},
        "length": {"float": [0.5, 3]},
    }
    objective = {"minimise": "cost"}
    constraints = {
        "duty": {"at_least": 150},
        "drop_inside": {"at_most": 20},
        "drop_outside": {"at_most": 10},
        "shell": {"at_most": 0.5},
    }
    best_known = {
        "inside": "water",
        "layout": "triangle",
        "tubes": 19,
        "passes": 2,
        "baffles": 18,
        "bore": 12.41001751,
        "length": 2.91526912,
    }

    def simulate(self, x: Any, gen: np.random.Generator) -> Any:
        bore = x["bore"] / 1000
        length = x["length"]
        around = "water" if x["inside"] == "oil" else "oil"

        # Inside the tubes: laminar or turbulent, with a smooth way from one to the other.
        density, capacity, viscosity, conductivity, flow = FLUIDS[x["inside"]]
        prandtl = capacity * viscosity / conductivity
        speed = flow / (density * x["tubes"] * np.pi * bore**2 / 4)
        reynolds = density * speed * bore / viscosity
        laminar = 3.66 + 1.86 * (reynolds * prandtl * bore / length) ** (1 / 3)
        turbulent = 0.023 * reynolds**0.8 * prandtl ** (1 / 3)
        inner = (laminar**8 + turbulent**8) ** (1 / 8) * conductivity / bore
        friction = ((64 / reynolds) ** 8 + (0.184 * reynolds**-0.2) ** 8) ** (1 / 8)
        pressure = density * speed**2 / 2
        drop_inside = x["passes"] * pressure * (friction * length / bore + 2.5)
        pumped = flow / density * drop_inside

        # Around them: back and forth between the baffles, across the tubes.
        density, capacity, viscosity, conductivity, flow = FLUIDS[around]
        prandtl = capacity * viscosity / conductivity
        share, transfer, resistance = LAYOUTS[x["layout"]]
        tubes = x["tubes"] * x["passes"]
        outer_bore = 1.2 * bore
        shell = 1.25 * outer_bore * np.sqrt(4 / np.pi * share * tubes)
        gap = shell * 0.2 * length / (x["baffles"] + 1)
        speed = flow / (density * gap)
        reynolds = density * speed * outer_bore / viscosity
        outer = transfer * reynolds**0.55 * prandtl ** (1 / 3) * conductivity / outer_bore
        rows = shell / outer_bore * (x["baffles"] + 1)
        drop_outside = resistance * reynolds**-0.19 * rows * density * speed**2 / 2
        pumped = pumped + flow / density * drop_outside

        area = np.pi * outer_bore * length * tubes
        duty = area * DIFFERENCE / (1.2 / inner + 1 / outer + 2e-4)
        made = 40 * area + 6 * tubes + 300 * shell * length + 6 * x["baffles"] + 15 * x["passes"]
        return {
            "cost": made + 2 * pumped,
            "duty": duty / 1000,
            "drop_inside": drop_inside / 1000,
            "drop_outside": drop_outside / 1000,
            "shell": shell,
        }
