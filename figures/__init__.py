"""How every figure of Capstan looks: one colour, marker and hatch per scheme, light ground, units, PNG and SVG."""
