"""Loops of fits of many targets with other losses, called by `conepursuit.loss_fits`."""
