package planted

// numberBugs lose the sign of a zero, or a result that is a number where a step on the way to it is none.
func numberBugs() []Bug {
	return []Bug{
		{
			Name: "tanh of -0 is +0", Package: "kernel/elementary", Run: "^TestSpecialNumbersOfFunctions$",
			Edits: []Edit{{
				"kernel/elementary.BuildTanh", "m.signed(m.pick(m.lt(t, number(0.55)), near, far), x)",
				"m.pick(m.lt(t, number(0.55)), m.fma(m.mul(near, number(0)), x, m.pick(m.lt(x, number(0)), m.neg(near), near)), m.signed(far, x))",
			}},
		},
	}
}
