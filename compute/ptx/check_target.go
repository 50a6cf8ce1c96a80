package ptx

// checkTarget looks at the version and the architecture of the module.
func (c *declarations) checkTarget() {
	m := c.module
	version := targetVersion(m.Target)
	last, known := lastMinors[m.Version.Major]
	switch {
	case m.Version.Before(oldest.version):
		c.reportLacking(m.VersionPos, "PTX %v is older than %v, with which the table of instructions begins", m.Version, oldest.version)
	case !known || m.Version.Minor > last:
		c.reportLacking(m.VersionPos, "PTX %v is not known", m.Version)
	}
	switch {
	case version == Version{}:
		c.report(m.TargetPos, "architecture %v is not known", m.Target.architecture())
	case m.Version.Before(version):
		c.report(m.TargetPos, "architecture %v needs PTX %v, the module has %v", m.Target.architecture(), version, m.Version)
	}
}

// Remarks are texts about a module that are no findings of Check: it is for an architecture older than sm_70, with
// which the table of instructions begins. Its instructions are read as instructions of sm_70; one that needs more than
// the module's own architecture is a finding. See Lockstep.
func (m *Module) Remarks() []string {
	if !m.Lockstep() {
		return nil
	}
	return []string{remarkOld(m.Target)}
}

// Lockstep reports whether the module is for an architecture before sm_70: the threads of a warp that execute an
// instruction execute it together.
func (m *Module) Lockstep() bool { return m != nil && m.Target.SM < volta.sm }

func remarkOld(t Target) string {
	return "architecture " + t.architecture() + " is older than sm_70, with which the table of instructions begins: compile with -arch=sm_70 or later"
}

// remark adds the remark on an old architecture to other findings.
func (c *reporter) remark() {
	if m := c.module; len(c.findings) > 0 && m.Lockstep() && targetVersion(m.Target) != (Version{}) {
		c.reportLacking(m.TargetPos, "%s", remarkOld(m.Target))
	}
}

// targetVersion returns the version that knows an architecture first; zero of one that is not known.
func targetVersion(t Target) Version {
	version, ok := targetVersions[t.SM]
	if t.Variant == "" || !ok {
		return version
	}
	first, ok := variantVersions[t.architecture()]
	if !ok && t.Variant == "f" && t.SM >= firstFamily {
		first, ok = familyVersion, true
	}
	switch {
	case !ok:
		return Version{}
	case first.Before(version):
		return version
	}
	return first
}
