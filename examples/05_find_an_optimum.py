"""
Find an optimum
===============

Two other questions: where is the field highest, and where does it exceed half of its unknown maximum?
"""

import fieldbo

best = fieldbo.run(fieldbo.load_mission("gp-lake-optimum", {"agent": {"battery": 1500}}))
summary = best.summary()
print(f"highest at {summary['reported_site']}, regret {summary['regret']:.3f}, for {best.cost:.0f} s")

share = fieldbo.run(fieldbo.load_mission("gp-lake-share", {"agent": {"battery": 3000}}))
summary = share.summary()
shown = f"above {summary['threshold']:.2f} in {summary['area_above']:.0f} m2"
print(f"{shown}, F1 {summary['f1']:.2f}, for {share.cost:.0f} s")
