"""The experiments of the paper, one module each.

``findings`` is the contract: an experiment has parts, whose results are JSON, and a presentation
of them. ``runner`` runs the parts and keeps what is finished, ``report`` writes the page, in the
frame of ``report_page``, with figures by ``drawing`` and the points of the errata that are named,
from ``errata``. ``pursuits``, ``nmf_baselines`` and ``garrote_protocol`` are what
the paper compares with.
"""
