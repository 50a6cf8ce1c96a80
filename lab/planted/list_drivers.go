package planted

func cleanDrivers() Promise {
	return Promise{"a driver call leaves threads, contexts and frames as it found them", []Bug{
		{
			Name:    "a frame remembers that a context failed",
			Package: "cudadrv/dynamic", Run: "^TestAFrameForgetsItsCall$|^TestAFailureSaysNothingOfEarlierOnes$",
			Edits: []Edit{{"cudadrv/dynamic.(*gate).leave", "f.keep, f.failing = nil, false", "f.keep = nil"}},
		},
		{
			Name:    "the context stays current after a call that failed",
			Package: "cudadrv/dynamic", Run: "^TestContextsStayCurrentAfterAFailure$",
			Edits: []Edit{
				{
					"cudadrv/dynamic.(*device).callCurrent",
					"\tr := d.lib.call(fn, f, n)\n\tf.current[0]",
					"\tr := d.lib.call(fn, f, n)\n\tif r != 0 {\n\t\treturn r\n\t}\n\tf.current[0]",
				},
			},
		},
		{
			Name:    "a launch changes the current context",
			Package: "cudadrv/dynamic", Run: "^TestALaunchMakesNoContextCurrent$",
			Edits: []Edit{{"cudadrv/dynamic.(*device).LaunchKernel", "d.callOn(s, call.LaunchKernel, f, 11)", "d.callCurrent(call.LaunchKernel, f, 11)"}},
		},
	}}
}
