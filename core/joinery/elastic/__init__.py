"""Rules of load and degree: who is overloaded, who helps, how many workers there should be."""
